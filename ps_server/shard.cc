#include "ps_server/shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "common/tensor/reduce.h"

namespace tandem {
namespace {

constexpr uint64_t kChunkElements = 1024;  // Of Block and of the chunk hashes; see cluster.proto.

void AddSums(const v1::Sums& from, v1::Sums* to) {
  to->set_examples(to->examples() + from.examples());
  to->set_loss(to->loss() + from.loss());
  while (to->metrics_size() < from.metrics_size()) to->add_metrics(0);
  for (int m = 0; m < from.metrics_size(); ++m) {
    to->set_metrics(m, to->metrics(m) + from.metrics(m));
  }
}

uint64_t Elements(const v1::Variable& variable) {
  uint64_t n = 1;
  for (uint64_t axis : variable.shape()) n *= axis;
  return n;
}

}  // namespace

int Shard::FindVariable(const Model& model, const std::string& name) {
  for (size_t v = 0; v < model.variables().size(); ++v) {
    if (model.variables()[v].name() == name) return static_cast<int>(v);
  }
  return -1;
}

absl::StatusOr<size_t> Shard::CountElements(const ShardJob& job, const v1::ClusterMap& map,
                                            int number) {
  size_t elements = 0;
  for (const v1::Block& block : map.shards(number).blocks()) {
    const int v = FindVariable(*job.model, block.variable());
    if (v < 0 || block.begin() >= block.end() ||
        block.end() > Elements(job.model->variables()[static_cast<size_t>(v)])) {
      return absl::InvalidArgumentError(absl::StrCat("cluster map ", map.epoch(), ": block ",
                                                     block.variable(), "[", block.begin(), ", ",
                                                     block.end(), ") is not of the job's model"));
    }
    elements += block.end() - block.begin();
  }
  return elements;
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::CreateBlank(std::shared_ptr<const ShardJob> job,
                                                          const v1::ClusterMap& map, int number) {
  TANDEM_ASSIGN_OR_RETURN(const size_t elements, CountElements(*job, map, number));
  return std::unique_ptr<Shard>(
      new Shard(std::move(job), map.epoch(), map.shards(number), elements));
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(std::shared_ptr<const ShardJob> job,
                                                     const v1::ClusterMap& map, int number) {
  TANDEM_ASSIGN_OR_RETURN(auto shard, CreateBlank(std::move(job), map, number));
  shard->weights_ = std::make_shared<Buffer>(shard->elements_);
  float* at = shard->weights_->data();
  for (const v1::Block& block : shard->place_.blocks()) {
    const Model& model = *shard->job_->model;
    model.Initialize(shard->job_->spec.seed(), FindVariable(model, block.variable()), block.begin(),
                     block.end(), at);
    at += block.end() - block.begin();
  }
  const Optimizer& optimizer = *shard->job_->optimizer;
  for (int s = 0; s < optimizer.num_slots(); ++s) {
    shard->slots_.push_back(std::make_shared<Buffer>(shard->elements_));
    std::fill_n(shard->slots_.back()->data(), shard->elements_, optimizer.initial_slot_value(s));
  }
  return shard;
}

Shard::Shard(std::shared_ptr<const ShardJob> job, uint64_t map_epoch, const v1::Shard& place,
             size_t elements)
    : job_(std::move(job)),
      map_epoch_(map_epoch),
      place_(place),
      elements_(elements),
      tree_(synchronous() ? job_->plan.replicas() : 1, elements),
      step_sums_(job_->plan.replicas()) {}

void Shard::Adopt(uint64_t map_epoch, std::vector<ShardAnswer>* answers) {
  map_epoch_ = map_epoch;
  for (const auto& [call, pull] : waiting_) {
    answers->push_back(
        {call, absl::FailedPreconditionError("the cluster map has changed"), {}, {}});
  }
  waiting_.clear();
}

void Shard::Push(uint64_t call, const v1::Push& push, Payload gradient,
                 std::vector<ShardAnswer>* answers) {
  // Payloads take time: what held when this one began may not hold any more.
  if (absl::Status status = CheckWhole(push, gradient); !status.ok()) {
    answers->push_back({call, std::move(status), {}, {}});
  } else if (synchronous()) {
    PushSynchronous(call, push, std::move(gradient), answers);
  } else {
    PushAsynchronous(call, push, std::move(gradient), answers);
  }
}

void Shard::PushSynchronous(uint64_t call, const v1::Push& push, Payload gradient,
                            std::vector<ShardAnswer>* answers) {
  PushOutcome pushed;
  const Node node{push.level(), push.index()};
  // Whichever node of the step says so, and however late: the outcome must not depend on the order.
  if (push.skipped() && push.step() == version_) step_skipped_ = true;
  if (step_skipped_) gradient = Payload();
  if (push.step() < version_ || !tree_.Add(node, std::move(gradient))) {
    pushed.duplicate = true;
    ++duplicates_ignored_;
  } else {
    previous_needed_ = false;  // Whoever pushed this had pulled version_ from every shard.
    for (int i = 0; i < push.sums_size(); ++i) {
      step_sums_[node.FirstLeaf() + static_cast<uint64_t>(i)] = push.sums(i);
    }
    peak_staged_bytes_ = std::max(peak_staged_bytes_, tree_.staged_bytes());
    if (tree_.complete()) CompleteStep();
  }
  pushed.version = version_;
  if (failure_.ok()) {
    answers->push_back({call, absl::OkStatus(), pushed, {}});
  } else {
    answers->push_back({call, failure_, {}, {}});
  }
  AnswerWaiting(answers);
}

void Shard::CompleteStep() {
  if (step_skipped_) {
    previous_ = weights_;  // Both versions have the same weights, and share the memory.
    v1::Sums* epoch = EpochOf(version_);
    epoch->set_skipped(epoch->skipped() + job_->plan.BatchExamples(version_));
  } else {
    // A pull of the old version that is still on its way out, or a snapshot, keeps its buffer; the
    // update takes a new one.
    if (previous_ == nullptr || previous_.use_count() > 1) {
      previous_ = std::make_shared<Buffer>(elements_);
    }
    if (!Apply(tree_, *weights_, previous_.get())) return;
    std::swap(weights_, previous_);
    for (const v1::Sums& sums : step_sums_) AddSums(sums, EpochOf(version_));
    ++updates_;
  }
  previous_needed_ = true;
  step_skipped_ = false;
  tree_.Clear();
  ++version_;
}

void Shard::PushAsynchronous(uint64_t call, const v1::Push& push, Payload gradient,
                             std::vector<ShardAnswer>* answers) {
  PushOutcome pushed;
  if (!applied_.Insert(push.step() * job_->plan.replicas() + push.index())) {
    pushed.duplicate = true;
    ++duplicates_ignored_;
  } else if (push.skipped()) {
    v1::Sums* epoch = EpochOf(push.step());
    epoch->set_skipped(epoch->skipped() + job_->plan.MicroBatchExamples(
                                              push.step(), static_cast<uint32_t>(push.index())));
  } else {
    peak_staged_bytes_ = std::max(peak_staged_bytes_, gradient.bytes());
    if (!push.empty()) ApplyInPlace(std::move(gradient));
    AddSums(push.sums(0), EpochOf(push.step()));
  }
  pushed.version = version_;
  answers->push_back({call, absl::OkStatus(), pushed, {}});
}

void Shard::ApplyInPlace(Payload gradient) {
  std::shared_ptr<Buffer> to = weights_;
  if (!frozen_weights_.expired()) to = std::make_shared<Buffer>(elements_);
  tree_.Add({0, 0}, std::move(gradient));
  Apply(tree_, *weights_, to.get());
  tree_.Clear();
  if (to != weights_) frozen_weights_.reset();
  weights_ = std::move(to);
  ++version_;
  ++updates_;
}

bool Shard::Apply(const ReductionTree& tree, const Buffer& from, Buffer* to) {
  // A snapshot may hold the slots: then they go to new memory, tile by tile on the way.
  std::vector<std::shared_ptr<const Buffer>> held(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].use_count() == 1) continue;
    held[s] = std::move(slots_[s]);
    slots_[s] = std::make_shared<Buffer>(elements_);
  }
  // Single gradients were checked as they came in; their sum may overflow.
  const bool check = synchronous() && job_->plan.replicas() > 1;
  ReductionTree::Reader sum(tree);
  std::vector<float*> slots(slots_.size());
  for (size_t at = 0; at < elements_; at += ReductionTree::kTileFloats) {
    const size_t count = std::min(ReductionTree::kTileFloats, elements_ - at);
    for (size_t s = 0; s < slots_.size(); ++s) {
      slots[s] = slots_[s]->data() + at;
      if (held[s] != nullptr) std::copy_n(held[s]->data() + at, count, slots[s]);
    }
    const float* gradient = sum.Next(count);
    if (check && !AllFinite(gradient, count)) {
      failure_ = absl::InvalidArgumentError(
          absl::StrCat("step ", version_, ": the sum of the gradients of ",
                       ElementName(at + FirstNonFinite(gradient, count)),
                       " overflows, though each of them is finite; lower the learning rate"));
      return false;
    }
    job_->optimizer->Apply(updates_ + 1, count, gradient, from.data() + at, to->data() + at,
                           slots.data());
  }
  return true;
}

v1::Sums* Shard::EpochOf(uint64_t step) {
  const uint64_t epoch = job_->plan.epoch(step);
  if (epochs_.size() <= epoch) epochs_.resize(epoch + 1);
  return &epochs_[epoch];
}

void Shard::Pull(uint64_t call, const v1::Pull& pull, std::vector<ShardAnswer>* answers) {
  absl::Status status = failure_.ok() ? CheckEpoch(pull.map_epoch()) : failure_;
  const uint64_t version = synchronous() ? pull.version() : version_;
  if (status.ok() && synchronous() && version > job_->plan.total_steps()) {
    status = absl::InvalidArgumentError(absl::StrCat("pull of version ", version, ": the job has ",
                                                     job_->plan.total_steps(), " steps"));
  } else if (status.ok() && version > version_) {
    if (waiting_.size() < kMaxWaitingPulls) {
      waiting_[call] = {version};
      return;
    }
    status = absl::ResourceExhaustedError(
        absl::StrCat("pull of version ", version, ": ", waiting_.size(), " pulls wait already"));
  } else if (status.ok() && version < version_ && !(previous_needed_ && version + 1 == version_)) {
    status = absl::OutOfRangeError(absl::StrCat(
        "pull of version ", version, ": every shard is past it; this one is at ", version_));
  }
  ShardAnswer answer{call, std::move(status), {}, {}};
  if (answer.status.ok()) answer.weights = {version, version == version_ ? weights_ : previous_};
  answers->push_back(std::move(answer));
}

void Shard::AnswerWaiting(std::vector<ShardAnswer>* answers) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->second.version > version_) {
      ++it;
      continue;
    }
    ShardAnswer answer{it->first, absl::OkStatus(), {}, {}};
    answer.weights = {version_, weights_};
    answers->push_back(std::move(answer));
    it = waiting_.erase(it);
  }
}

std::string Shard::ChunkHashes() const {
  std::string hashes;
  const float* at = weights_->data();
  for (const v1::Block& block : place_.blocks()) {
    for (uint64_t begin = block.begin(); begin < block.end(); begin += kChunkElements) {
      const uint64_t count = std::min(kChunkElements, block.end() - begin);
      hashes += Hash128(at, count * sizeof(float));
      at += count;
    }
  }
  return hashes;
}

google::protobuf::RepeatedPtrField<v1::Interval> Shard::Intervals() const {
  google::protobuf::RepeatedPtrField<v1::Interval> intervals;
  for (const auto& [begin, end] : applied_.intervals()) {
    v1::Interval* interval = intervals.Add();
    interval->set_begin(begin);
    interval->set_end(end);
  }
  return intervals;
}

v1::InspectResponse Shard::Inspect(bool chunk_hashes) const {
  v1::InspectResponse out;
  out.set_map_epoch(map_epoch_);
  out.set_version(version_);
  *out.mutable_blocks() = place_.blocks();
  *out.mutable_applied() = Intervals();
  out.set_duplicates_ignored(duplicates_ignored_);
  const bool two = previous_ != nullptr && previous_ != weights_;
  out.set_weight_bytes(weights_->bytes() + (two ? previous_->bytes() : 0));
  for (const auto& slot : slots_) out.set_slot_bytes(out.slot_bytes() + slot->bytes());
  out.set_staged_bytes(tree_.staged_bytes());
  out.set_peak_staged_bytes(peak_staged_bytes_);
  if (chunk_hashes) out.set_chunk_hashes(ChunkHashes());
  for (const v1::Sums& sums : epochs_) *out.add_epochs() = sums;
  return out;
}

v1::ShardStatus Shard::Status(bool report) const {
  v1::ShardStatus status;
  status.set_ready(true);
  status.set_version(version_);
  *status.mutable_applied() = Intervals();
  if (!epochs_.empty()) *status.mutable_epoch() = epochs_.back();
  if (!report) return status;
  v1::InspectResponse held = Inspect(true);
  v1::ShardReport* out = status.mutable_report();
  out->set_version(version_);
  out->set_updates_applied(synchronous() ? version_ : applied_.size());
  *out->mutable_applied() = std::move(*held.mutable_applied());
  *out->mutable_epochs() = std::move(*held.mutable_epochs());
  out->set_duplicates_ignored(duplicates_ignored_);
  out->set_chunk_hashes(held.chunk_hashes());
  return status;
}

}  // namespace tandem
