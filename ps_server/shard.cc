#include "ps_server/shard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"

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

bool Finite(const v1::Sums& sums) {
  return std::isfinite(sums.loss()) && std::all_of(sums.metrics().begin(), sums.metrics().end(),
                                                   [](double m) { return std::isfinite(m); });
}

std::string Name(const v1::Push& push) {
  return absl::StrCat("push of step ", push.step(), ", node (", push.level(), ", ", push.index(),
                      ")");
}

bool SameBlock(const v1::Block& a, const v1::Block& b) {
  return a.begin() == b.begin() && a.end() == b.end() && a.variable() == b.variable();
}

int FindVariable(const Model& model, const std::string& name) {
  for (size_t v = 0; v < model.variables().size(); ++v) {
    if (model.variables()[v].name() == name) return static_cast<int>(v);
  }
  return -1;
}

uint64_t Elements(const v1::Variable& variable) {
  uint64_t n = 1;
  for (uint64_t axis : variable.shape()) n *= axis;
  return n;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(std::shared_ptr<const ShardJob> job,
                                                     const v1::ClusterMap& map, int number) {
  const v1::Shard& place = map.shards(number);
  size_t elements = 0;
  for (const v1::Block& block : place.blocks()) {
    const int v = FindVariable(*job->model, block.variable());
    if (v < 0 || block.begin() >= block.end() ||
        block.end() > Elements(job->model->variables()[static_cast<size_t>(v)])) {
      return absl::InvalidArgumentError(absl::StrCat("cluster map ", map.epoch(), ": block ",
                                                     block.variable(), "[", block.begin(), ", ",
                                                     block.end(), ") is not of the job's model"));
    }
    elements += block.end() - block.begin();
  }
  auto shard = std::unique_ptr<Shard>(new Shard(std::move(job), map.epoch(), place, elements));
  float* at = shard->weights_->data();
  for (const v1::Block& block : place.blocks()) {
    const Model& model = *shard->job_->model;
    model.Initialize(shard->job_->spec.seed(), FindVariable(model, block.variable()), block.begin(),
                     block.end(), at);
    at += block.end() - block.begin();
  }
  return shard;
}

Shard::Shard(std::shared_ptr<const ShardJob> job, uint64_t map_epoch, const v1::Shard& place,
             size_t elements)
    : job_(std::move(job)),
      map_epoch_(map_epoch),
      place_(place),
      elements_(elements),
      weights_(std::make_shared<Buffer>(elements)),
      tree_(synchronous() ? job_->plan.replicas() : 1, elements),
      step_sums_(job_->plan.replicas()) {
  for (int s = 0; s < job_->optimizer->num_slots(); ++s) {
    slots_.emplace_back(elements);
    std::fill_n(slots_.back().data(), elements, job_->optimizer->initial_slot_value(s));
  }
}

absl::Status Shard::CheckEpoch(uint64_t map_epoch) const {
  if (map_epoch == map_epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("map epoch ", map_epoch, " is not current; the shard's is ", map_epoch_));
}

absl::Status Shard::CheckBlocks(const v1::Push& push) const {
  for (int b = 0; b < place_.blocks_size() || b < push.blocks_size(); ++b) {
    if (b < place_.blocks_size() && b < push.blocks_size() &&
        SameBlock(place_.blocks(b), push.blocks(b))) {
      continue;
    }
    if (b < push.blocks_size() && FindVariable(*job_->model, push.blocks(b).variable()) < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          Name(push), ": blocks[", b, "]: unknown variable \"", push.blocks(b).variable(), "\""));
    }
    const bool extra = b >= place_.blocks_size();
    const v1::Block& block = extra ? push.blocks(b) : place_.blocks(b);
    return absl::InvalidArgumentError(absl::StrCat(
        Name(push), ": blocks[", b, "]: ", extra ? "this shard does not hold " : "expected ",
        block.variable(), "[", block.begin(), ", ", block.end(), ")"));
  }
  return absl::OkStatus();
}

absl::Status Shard::CheckSums(const v1::Push& push) const {
  const Node node{push.level(), push.index()};
  const uint64_t leaves = node.EndLeaf(job_->plan.replicas()) - node.FirstLeaf();
  if (static_cast<uint64_t>(push.sums_size()) != leaves) {
    return absl::InvalidArgumentError(absl::StrCat(Name(push), ": has ", push.sums_size(),
                                                   " sums; expected one for each of its ", leaves,
                                                   " micro-batches"));
  }
  for (uint64_t leaf = 0; leaf < leaves; ++leaf) {
    const v1::Sums& sums = push.sums(static_cast<int>(leaf));
    const auto r = static_cast<uint32_t>(node.FirstLeaf() + leaf);
    const uint64_t expected = job_->plan.MicroBatchExamples(push.step(), r);
    if (sums.examples() != expected) {
      return absl::InvalidArgumentError(absl::StrCat(Name(push), ": sums[", leaf, "]: counts ",
                                                     sums.examples(), " examples; micro-batch ", r,
                                                     " has ", expected));
    }
    if (!Finite(sums) || sums.metrics_size() > job_->spec.metrics_size()) {
      return absl::InvalidArgumentError(absl::StrCat(Name(push), ": sums[", leaf,
                                                     "]: expected finite sums of at most ",
                                                     job_->spec.metrics_size(), " metrics"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Shard::CheckPush(const v1::Push& push) const {
  TANDEM_RETURN_IF_ERROR(CheckEpoch(push.map_epoch()));
  const Node node{push.level(), push.index()};
  if (push.step() >= job_->plan.total_steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": the job has ", job_->plan.total_steps(), " steps"));
  }
  if (!IsNode(node, job_->plan.replicas()) || (!synchronous() && node.level != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": no such node; the job has ", job_->plan.replicas(), " replicas",
                     synchronous() ? "" : " and takes micro-batches (level 0) alone"));
  }
  if (synchronous() && push.step() > version_) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(push), ": too far ahead; the shard is at step ", version_));
  }
  TANDEM_RETURN_IF_ERROR(CheckSums(push));
  // The larger micro-batches come first: a node is empty when its first one is.
  const bool empty =
      job_->plan.MicroBatchExamples(push.step(), static_cast<uint32_t>(node.FirstLeaf())) == 0;
  if (push.empty() != empty) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": empty is ", push.empty() ? "set" : "not set",
                     ", but the node has ", empty ? "no " : "", "examples"));
  }
  if (empty) return 0;
  TANDEM_RETURN_IF_ERROR(CheckBlocks(push));
  return elements_ * sizeof(float);
}

absl::Status Shard::NonFiniteError(const v1::Push& push, size_t element) const {
  for (const v1::Block& block : place_.blocks()) {
    const uint64_t size = block.end() - block.begin();
    if (element < size) {
      return absl::InvalidArgumentError(absl::StrCat(Name(push), ": the gradient of ",
                                                     block.variable(), "[", block.begin() + element,
                                                     "] is not finite"));
    }
    element -= size;
  }
  return absl::InvalidArgumentError(absl::StrCat(Name(push), ": the gradient is not finite"));
}

void Shard::Push(uint64_t call, const v1::Push& push, Payload gradient,
                 std::vector<ShardAnswer>* answers) {
  // Payloads take time: what held when this one began may not hold any more.
  absl::StatusOr<size_t> bytes = CheckPush(push);
  if (bytes.ok() && *bytes != gradient.bytes()) {
    bytes = absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": payload of ", gradient.bytes(), " bytes; expected ", *bytes));
  }
  if (!bytes.ok()) {
    answers->push_back({call, std::move(bytes).status(), {}, {}});
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
  answers->push_back({call, absl::OkStatus(), pushed, {}});
  AnswerWaiting(answers);
}

void Shard::CompleteStep() {
  // A pull of the old version that is still on its way out keeps its buffer; the update takes a new
  // one.
  if (previous_ == nullptr || previous_.use_count() > 1) {
    previous_ = std::make_shared<Buffer>(elements_);
  }
  Apply(tree_, *weights_, previous_.get());
  std::swap(weights_, previous_);
  previous_needed_ = true;
  const uint64_t epoch = job_->plan.epoch(version_);
  if (epochs_.size() <= epoch) epochs_.resize(epoch + 1);
  for (const v1::Sums& sums : step_sums_) AddSums(sums, &epochs_[epoch]);
  tree_.Clear();
  ++version_;
}

void Shard::PushAsynchronous(uint64_t call, const v1::Push& push, Payload gradient,
                             std::vector<ShardAnswer>* answers) {
  PushOutcome pushed;
  if (!applied_.Insert(push.step() * job_->plan.replicas() + push.index())) {
    pushed.duplicate = true;
    ++duplicates_ignored_;
  } else {
    peak_staged_bytes_ = std::max(peak_staged_bytes_, gradient.bytes());
    if (!push.empty()) {
      tree_.Add({0, 0}, std::move(gradient));
      Apply(tree_, *weights_, weights_.get());
      tree_.Clear();
      ++version_;
    }
    const uint64_t epoch = job_->plan.epoch(push.step());
    if (epochs_.size() <= epoch) epochs_.resize(epoch + 1);
    AddSums(push.sums(0), &epochs_[epoch]);
  }
  pushed.version = version_;
  answers->push_back({call, absl::OkStatus(), pushed, {}});
}

void Shard::Apply(const ReductionTree& tree, const Buffer& from, Buffer* to) {
  ReductionTree::Reader sum(tree);
  std::vector<float*> slots(slots_.size());
  for (size_t at = 0; at < elements_; at += ReductionTree::kTileFloats) {
    const size_t count = std::min(ReductionTree::kTileFloats, elements_ - at);
    for (size_t s = 0; s < slots_.size(); ++s) slots[s] = slots_[s].data() + at;
    job_->optimizer->Apply(version_ + 1, count, sum.Next(count), from.data() + at, to->data() + at,
                           slots.data());
  }
}

void Shard::Pull(uint64_t call, const v1::Pull& pull, std::vector<ShardAnswer>* answers) {
  absl::Status status = CheckEpoch(pull.map_epoch());
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

v1::InspectResponse Shard::Inspect(bool chunk_hashes) const {
  v1::InspectResponse out;
  out.set_map_epoch(map_epoch_);
  out.set_version(version_);
  *out.mutable_blocks() = place_.blocks();
  for (const auto& [begin, end] : applied_.intervals()) {
    v1::Interval* interval = out.add_applied();
    interval->set_begin(begin);
    interval->set_end(end);
  }
  out.set_duplicates_ignored(duplicates_ignored_);
  out.set_weight_bytes(weights_->bytes() + (previous_ == nullptr ? 0 : previous_->bytes()));
  for (const Buffer& slot : slots_) out.set_slot_bytes(out.slot_bytes() + slot.bytes());
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
