// How a shard's state leaves it and comes back: checkpoints and standbys.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/tree.h"
#include "ps_server/shard.h"

namespace tandem {
namespace {

// Walks a payload from piece to piece.
class PayloadReader {
 public:
  explicit PayloadReader(const Payload& payload) : payload_(payload) {}

  // The next `elements` values, in memory of their own. So many must be there.
  std::shared_ptr<Buffer> Next(size_t elements) {
    auto buffer = std::make_shared<Buffer>(elements);
    char* to = reinterpret_cast<char*>(buffer->data());
    for (size_t left = buffer->bytes(); left > 0;) {
      const Payload::Piece& piece = payload_.pieces()[piece_];
      const size_t size = std::min(left, piece.size - offset_);
      std::memcpy(to, piece.data + offset_, size);
      to += size, left -= size, offset_ += size;
      if (offset_ == piece.size) ++piece_, offset_ = 0;
    }
    return buffer;
  }

 private:
  const Payload& payload_;
  size_t piece_ = 0, offset_ = 0;
};

void AppendBuffer(std::shared_ptr<const Buffer> buffer, Payload* payload) {
  const Buffer& values = *buffer;
  payload->Append(values.data(), values.bytes(), std::move(buffer));
}

// The memory itself where nobody else has it, else a copy.
std::shared_ptr<Buffer> TakeOver(std::shared_ptr<const Buffer> buffer) {
  // Whoever made it made it to be written; const is how it travels.
  if (buffer.use_count() == 1) return std::const_pointer_cast<Buffer>(std::move(buffer));
  auto copy = std::make_shared<Buffer>(buffer->size());
  std::copy_n(buffer->data(), buffer->size(), copy->data());
  return copy;
}

}  // namespace

v1::ShardState Shard::State() const {
  v1::ShardState state;
  state.set_version(version_);
  state.set_updates(updates_);
  *state.mutable_applied() = Intervals();
  for (const v1::Sums& sums : epochs_) *state.add_epochs() = sums;
  state.set_duplicates_ignored(duplicates_ignored_);
  return state;
}

absl::Status Shard::TakeState(const v1::ShardState& state) {
  const BatchPlan& plan = job_->plan;
  const uint64_t most = synchronous() ? plan.total_steps() : plan.total_steps() * plan.replicas();
  if (state.version() > most || state.updates() > state.version()) {
    return absl::InvalidArgumentError(absl::StrCat("state: version ", state.version(), " after ",
                                                   state.updates(), " updates; the job has ",
                                                   most));
  }
  if (synchronous() && state.applied_size() > 0) {
    return absl::InvalidArgumentError("state: is of an asynchronous job");
  }
  for (const v1::Interval& interval : state.applied()) {
    if (interval.end() > most || !applied_.Append(interval.begin(), interval.end())) {
      return absl::InvalidArgumentError(
          absl::StrCat("state: applied [", interval.begin(), ", ", interval.end(),
                       "): expected intervals in order, below ", most));
    }
  }
  if (!synchronous() && state.version() > applied_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("state: version ", state.version(), " of ",
                                                   applied_.size(), " applied micro-batches"));
  }
  const uint64_t epochs = plan.epoch(plan.total_steps() - 1) + 1;
  if (static_cast<uint64_t>(state.epochs_size()) > epochs) {
    return absl::InvalidArgumentError(
        absl::StrCat("state: sums of ", state.epochs_size(), " epochs; the job has ", epochs));
  }
  version_ = state.version();
  updates_ = state.updates();
  epochs_.assign(state.epochs().begin(), state.epochs().end());
  duplicates_ignored_ = state.duplicates_ignored();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Restore(std::shared_ptr<const ShardJob> job,
                                                      const v1::ClusterMap& map, int number,
                                                      ShardTensors tensors) {
  TANDEM_ASSIGN_OR_RETURN(auto shard, CreateBlank(std::move(job), map, number));
  TANDEM_RETURN_IF_ERROR(shard->TakeState(tensors.state));
  const auto slots = static_cast<size_t>(shard->job_->optimizer->num_slots());
  if (tensors.slots.size() != slots) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", tensors.slots.size(), " slots; the job's optimizer has ", slots));
  }
  tensors.slots.push_back(std::move(tensors.weights));
  for (std::shared_ptr<const Buffer>& tensor : tensors.slots) {
    if (tensor == nullptr || tensor->size() != shard->elements_) {
      return absl::InvalidArgumentError(absl::StrCat("has ", tensor == nullptr ? 0 : tensor->size(),
                                                     " elements; shard ", number, " has ",
                                                     shard->elements_));
    }
    shard->slots_.push_back(TakeOver(std::move(tensor)));
  }
  shard->weights_ = std::move(shard->slots_.back());
  shard->slots_.pop_back();
  return shard;
}

absl::StatusOr<size_t> Shard::ReplicaBytes(const ShardJob& job, const v1::ClusterMap& map,
                                           int number, const v1::ReplicaBegin& begin) {
  TANDEM_ASSIGN_OR_RETURN(const size_t elements, CountElements(job, map, number));
  const bool synchronous = job.spec.training().consistency().has_sync();
  const uint32_t replicas = job.plan.replicas();
  const int most = synchronous ? static_cast<int>(replicas / 2 + 1) : 0;
  if (begin.nodes_size() > most || static_cast<uint32_t>(begin.step_sums_size()) > replicas ||
      (begin.has_previous() && !synchronous)) {
    return absl::InvalidArgumentError(
        absl::StrCat("state: has ", begin.nodes_size(), " nodes and ", begin.step_sums_size(),
                     " sums; expected what a step of ", replicas, " replicas has"));
  }
  auto tensors =
      static_cast<size_t>(1 + job.optimizer->num_slots() + (begin.has_previous() ? 1 : 0));
  for (const v1::PartialNode& node : begin.nodes()) {
    if (!IsNode({node.level(), node.index()}, replicas)) {
      return absl::InvalidArgumentError(
          absl::StrCat("state: node (", node.level(), ", ", node.index(), "): no such node"));
    }
    tensors += node.empty() ? 0 : 1;
  }
  return tensors * elements * sizeof(float);
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Import(std::shared_ptr<const ShardJob> job,
                                                     const v1::ClusterMap& map, int number,
                                                     const v1::ReplicaBegin& begin,
                                                     const Payload& payload) {
  TANDEM_ASSIGN_OR_RETURN(const size_t bytes, ReplicaBytes(*job, map, number, begin));
  if (payload.bytes() != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("state: payload of ", payload.bytes(), " bytes; expected ", bytes));
  }
  TANDEM_ASSIGN_OR_RETURN(auto shard, CreateBlank(std::move(job), map, number));
  TANDEM_RETURN_IF_ERROR(shard->TakeState(begin.state()));
  PayloadReader reader(payload);
  shard->weights_ = reader.Next(shard->elements_);
  shard->previous_needed_ = begin.has_previous();
  if (begin.has_previous()) shard->previous_ = reader.Next(shard->elements_);
  for (int s = 0; s < shard->job_->optimizer->num_slots(); ++s) {
    shard->slots_.push_back(reader.Next(shard->elements_));
  }
  for (const v1::PartialNode& node : begin.nodes()) {
    Payload gradient;
    if (!node.empty()) AppendBuffer(reader.Next(shard->elements_), &gradient);
    if (!shard->tree_.Add({node.level(), node.index()}, std::move(gradient))) {
      return absl::InvalidArgumentError("state: a node covers another");
    }
  }
  std::copy(begin.step_sums().begin(), begin.step_sums().end(), shard->step_sums_.begin());
  shard->step_skipped_ = begin.step_skipped();
  return shard;
}

void Shard::Export(v1::ReplicaBegin* begin, Payload* payload) {
  *begin->mutable_state() = State();
  begin->set_has_previous(previous_needed_);
  begin->set_step_skipped(step_skipped_);
  AppendBuffer(FrozenWeights(), payload);
  if (previous_needed_) AppendBuffer(previous_, payload);
  for (const auto& slot : slots_) AppendBuffer(slot, payload);
  for (auto& [node, gradient] : tree_.Nodes()) {
    v1::PartialNode* partial = begin->add_nodes();
    partial->set_level(node.level);
    partial->set_index(node.index);
    partial->set_empty(gradient.bytes() == 0);
    payload->Append(std::move(gradient));
  }
  for (const v1::Sums& sums : step_sums_) *begin->add_step_sums() = sums;
}

ShardTensors Shard::Snapshot() {
  ShardTensors tensors;
  tensors.state = State();
  tensors.blocks.assign(place_.blocks().begin(), place_.blocks().end());
  tensors.weights = FrozenWeights();
  tensors.slots.assign(slots_.begin(), slots_.end());
  return tensors;
}

std::shared_ptr<const Buffer> Shard::FrozenWeights() {
  auto held = frozen_weights_.lock();
  if (held == nullptr) held = std::make_shared<const std::shared_ptr<Buffer>>(weights_);
  frozen_weights_ = held;
  const Buffer* weights = held->get();
  return std::shared_ptr<const Buffer>(std::move(held), weights);
}

std::optional<uint64_t> Shard::cut() const {
  if (synchronous()) return version_;
  if (applied_.intervals().size() > 1) return std::nullopt;
  const bool from_zero = applied_.size() == 0 || applied_.Contains(0);
  if (!from_zero || applied_.size() % job_->plan.replicas() != 0) return std::nullopt;
  return applied_.size() / job_->plan.replicas();
}

}  // namespace tandem
