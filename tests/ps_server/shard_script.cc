#include "tests/ps_server/shard_script.h"

#include <algorithm>
#include <utility>

#include "common/base/tree.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

v1::Variable Var(const std::string& name, uint64_t size) {
  v1::Variable variable;
  variable.set_name(name);
  variable.add_shape(size);
  return variable;
}

class PlainModel : public Model {
 public:
  const std::vector<v1::Variable>& variables() const override { return variables_; }
  uint64_t num_elements() const override { return kModelElements; }
  void Initialize(uint64_t seed, int variable, uint64_t begin, uint64_t end,
                  float* out) const override {
    for (uint64_t e = begin; e < end; ++e) {
      out[e - begin] = static_cast<float>(100 * variable) + static_cast<float>(e);
    }
  }
  absl::Status CheckLabels(float min_label, float max_label) const override {
    return absl::OkStatus();
  }
  int num_metrics() const override { return 1; }

 private:
  const std::vector<v1::Variable> variables_ = {Var("b", 1500), Var("a", 700)};
};

}  // namespace

std::shared_ptr<const ShardJob> MakeShardJob(const ShardJobOptions& options) {
  v1::JobSpec spec;
  v1::Training* training = spec.mutable_training();
  training->set_replicas(options.replicas);
  training->set_steps(options.steps);
  training->set_global_batch_size(options.batch);
  if (options.synchronous) {
    training->mutable_consistency()->mutable_sync();
  } else {
    training->mutable_consistency()->mutable_async();
  }
  training->set_non_finite(options.skip ? "skip" : "stop");
  spec.mutable_checkpoint()->set_every_steps(options.checkpoint_every);
  spec.add_metrics()->mutable_accuracy();
  if (options.optimizer == "adam") {
    v1::Adam* adam = spec.mutable_optimizer()->mutable_adam();
    adam->set_learning_rate(0.01f);
    adam->set_beta_1(0.9f);
    adam->set_beta_2(0.999f);
    adam->set_epsilon(1e-7f);
  } else {
    v1::Sgd* sgd = spec.mutable_optimizer()->mutable_sgd();
    sgd->set_learning_rate(0.5f);
    sgd->set_momentum(0);
    sgd->set_nesterov(false);
  }
  auto optimizer = CreateOptimizer(spec.optimizer());
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  return std::make_shared<const ShardJob>(
      ShardJob{spec, std::make_unique<PlainModel>(), *std::move(optimizer),
               BatchPlan(*training, false, 0, options.examples)});
}

v1::ClusterMap MakeMap(int shards) {
  // The pieces of 2200 elements: chunks of "b" end at 1024 and 1500, of "a" at 2200.
  const std::vector<std::vector<uint64_t>> cuts = {{}, {1024}, {1024, 1500}, {1024, 1500, 2200}};
  v1::ClusterMap map;
  map.set_epoch(1);
  uint64_t begin = 0;
  for (int k = 0; k < shards; ++k) {
    const auto& own = cuts[static_cast<size_t>(shards) - 1];
    const uint64_t end = k + 1 == shards ? kModelElements : own[static_cast<size_t>(k)];
    v1::Shard* shard = map.add_shards();
    const auto add = [&](const char* name, uint64_t variable_begin, uint64_t variable_end) {
      const uint64_t from = std::max(begin, variable_begin), to = std::min(end, variable_end);
      if (from >= to) return;
      v1::Block* block = shard->add_blocks();
      block->set_variable(name);
      block->set_begin(from - variable_begin);
      block->set_end(to - variable_begin);
    };
    add("b", 0, 1500);
    add("a", 1500, 2200);
    begin = end;
  }
  return map;
}

ShardScript::ShardScript(std::shared_ptr<const ShardJob> shard_job, const v1::ClusterMap& map,
                         int number)
    : job(std::move(shard_job)), place_(map.shards(number)) {
  auto created = Shard::Create(job, map, number);
  EXPECT_TRUE(created.ok()) << created.status();
  shard = *std::move(created);
  for (int k = 0; k < number; ++k) {
    for (const v1::Block& block : map.shards(k).blocks()) first += block.end() - block.begin();
  }
}

v1::Push ShardScript::MakePush(uint64_t step, uint32_t level, uint64_t index) const {
  v1::Push push;
  push.set_map_epoch(1);
  push.set_step(step);
  push.set_level(level);
  push.set_index(index);
  *push.mutable_blocks() = place_.blocks();
  const Node node{level, index};
  uint64_t examples = 0;
  for (uint64_t r = node.FirstLeaf(); r < node.EndLeaf(job->plan.replicas()); ++r) {
    v1::Sums* sums = push.add_sums();
    sums->set_examples(job->plan.MicroBatchExamples(step, static_cast<uint32_t>(r)));
    sums->set_loss(static_cast<double>(r + 1));
    sums->add_metrics(1);
    examples += sums->examples();
  }
  if (examples == 0) {
    push.set_empty(true);
    push.clear_blocks();
  }
  return push;
}

Payload ShardScript::Part(const std::vector<float>& gradient) const {
  auto part = std::make_shared<std::vector<float>>(
      gradient.begin() + static_cast<std::ptrdiff_t>(first),
      gradient.begin() + static_cast<std::ptrdiff_t>(first + shard->elements()));
  return Payload(part->data(), part->size() * sizeof(float), part);
}

void ShardScript::Take(std::vector<ShardAnswer>* out) {
  for (ShardAnswer& answer : *out) {
    const uint64_t call = answer.call;
    EXPECT_TRUE(answers.emplace(call, std::move(answer)).second) << "call " << call << " twice";
  }
}

ShardAnswer ShardScript::Answer(uint64_t call) {
  auto answer = answers.extract(call);
  EXPECT_FALSE(answer.empty()) << "call " << call << " is not answered";
  return answer.empty() ? ShardAnswer() : std::move(answer.mapped());
}

ShardAnswer ShardScript::Push(const v1::Push& push, const std::vector<float>& gradient) {
  std::vector<ShardAnswer> out;
  const uint64_t call = next_call_++;
  shard->Push(call, push, push.empty() ? Payload() : Part(gradient), &out);
  Take(&out);
  return Answer(call);
}

ShardAnswer ShardScript::Push(uint64_t step, uint32_t level, uint64_t index, float value) {
  return Push(MakePush(step, level, index), std::vector<float>(kModelElements, value));
}

ShardAnswer ShardScript::PushSkipped(uint64_t step, uint32_t level, uint64_t index) {
  v1::Push push = MakePush(step, level, index);
  push.set_skipped(true);
  push.set_empty(false);
  push.clear_blocks();
  push.clear_sums();
  std::vector<ShardAnswer> out;
  const uint64_t call = next_call_++;
  shard->Push(call, push, Payload(), &out);
  Take(&out);
  return Answer(call);
}

uint64_t ShardScript::Pull(uint64_t version, uint64_t map_epoch) {
  v1::Pull pull;
  pull.set_map_epoch(map_epoch);
  pull.set_version(version);
  std::vector<ShardAnswer> out;
  shard->Pull(next_call_, pull, &out);
  Take(&out);
  return next_call_++;
}

std::vector<float> ShardScript::Weights() const {
  v1::Pull pull;
  pull.set_map_epoch(1);
  pull.set_version(shard->version());
  std::vector<ShardAnswer> out;
  shard->Pull(0, pull, &out);
  const Buffer& buffer = *out.at(0).weights->buffer;
  return std::vector<float>(buffer.data(), buffer.data() + buffer.size());
}

}  // namespace tandem
