// A shard of the parameters: weights, optimizer slots, version. The rules of pushing and pulling,
// and nothing else: no thread, socket, file or clock. The service feeds it and sends its answers.
//
// Synchronous jobs: pushes of step t are staged and summed in the fixed tree; when all R
// micro-batches are in, one update moves version t to t + 1. Weights have two buffers: the update
// reads one and writes the other, so version t stays until the first push named t + 1 shows that
// every shard has reached t + 1. Asynchronous and bounded jobs: each push is an update of its own,
// applied in place once, remembered by number; a pull may see a tensor while it changes.
//
// A snapshot shares the memory: an update of what a snapshot holds goes to new memory, in the same
// pass. The last owner of a snapshot's tensors must let go of them on the thread that drives the
// shard.
#ifndef TANDEM_PS_SERVER_SHARD_H_
#define TANDEM_PS_SERVER_SHARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/data/batch_plan.h"
#include "common/nn/model.h"
#include "common/optim/optimizer.h"
#include "common/rpc/payload.h"
#include "common/tensor/buffer.h"
#include "proto/cluster.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps_server/applied_set.h"
#include "ps_server/reduction_tree.h"

namespace tandem {

// What a job means to a shard. Shared by the shards of a process.
struct ShardJob {
  v1::JobSpec spec;  // With defaults filled in.
  std::unique_ptr<const Model> model;
  std::unique_ptr<const Optimizer> optimizer;
  BatchPlan plan;
};

// Weights as a pull is answered with them: the buffer is shared with the shard and not written
// while a synchronous pull holds it.
struct Weights {
  uint64_t version = 0;
  std::shared_ptr<const Buffer> buffer;
};

// What became of a push.
struct PushOutcome {
  bool duplicate = false;  // The name was known, or covered by what is known.
  uint64_t version = 0;    // After it.
};

// What became of an operation of call `call`: one of the three.
struct ShardAnswer {
  uint64_t call = 0;
  absl::Status status;  // When not ok, nothing changed and the call ends.
  std::optional<PushOutcome> pushed;
  std::optional<Weights> weights;
};

// Not thread-safe: one thread drives it.
class Shard {
 public:
  static constexpr size_t kMaxWaitingPulls = 4096;

  // Takes a place in `map` as its shard number `number`: initial weights, version 0.
  // INVALID_ARGUMENT when the map's blocks are not of the model's variables.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(std::shared_ptr<const ShardJob> job,
                                                       const v1::ClusterMap& map, int number);
  // The same with what a checkpoint holds of its blocks, whose memory it takes over.
  // INVALID_ARGUMENT when that is not a state that this shard can be in.
  static absl::StatusOr<std::unique_ptr<Shard>> Restore(std::shared_ptr<const ShardJob> job,
                                                        const v1::ClusterMap& map, int number,
                                                        ShardTensors tensors);
  // The same with the whole state of a primary: `begin` and `payload` as Export made them,
  // ReplicaBytes(begin) long. INVALID_ARGUMENT as above.
  static absl::StatusOr<std::unique_ptr<Shard>> Import(std::shared_ptr<const ShardJob> job,
                                                       const v1::ClusterMap& map, int number,
                                                       const v1::ReplicaBegin& begin,
                                                       const Payload& payload);
  // How long the payload of a primary's state is. INVALID_ARGUMENT when `begin` cannot be one.
  static absl::StatusOr<size_t> ReplicaBytes(const ShardJob& job, const v1::ClusterMap& map,
                                             int number, const v1::ReplicaBegin& begin);

  // Goes on under another map, with all its content. Pulls that wait end with FAILED_PRECONDITION.
  void Adopt(uint64_t map_epoch, std::vector<ShardAnswer>* answers);

  // Checks a push before its payload is taken: the bytes that the payload must have, or the
  // refusal.
  absl::StatusOr<size_t> CheckPush(const v1::Push& push) const;
  // Checks it once more with its whole payload, as Push does.
  absl::Status CheckWhole(const v1::Push& push, const Payload& gradient) const;

  // A push with its whole payload, which CheckPush has sized. Answers it, and any pull that waited
  // for the version it completes. The payload's values are checked by the caller as they come in
  // (NonFiniteError), so that each is read while still in the cache.
  void Push(uint64_t call, const v1::Push& push, Payload gradient,
            std::vector<ShardAnswer>* answers);

  // Answers at once, or later with the push that completes the version. A call has one pull waiting
  // at a time: the caller begins no other operation of it until the answer is there.
  void Pull(uint64_t call, const v1::Pull& pull, std::vector<ShardAnswer>* answers);

  // The caller of a waiting pull is gone.
  void Cancel(uint64_t call) { waiting_.erase(call); }

  // The refusal of a push whose payload has a value that is not finite, at `element` of the
  // payload.
  absl::Status NonFiniteError(const v1::Push& push, size_t element) const;

  // What a checkpoint holds of it, as it is now.
  ShardTensors Snapshot();
  // Everything, as it is now: sets `state` and what follows it in *begin.
  void Export(v1::ReplicaBegin* begin, Payload* payload);
  // The step whose cut this is: exactly the micro-batches of the steps before it are applied.
  std::optional<uint64_t> cut() const;

  // Not ok: the job cannot go on, since a sum of finite gradients overflowed. The push that found
  // it and all operations that follow are answered with this.
  const absl::Status& failure() const { return failure_; }

  v1::InspectResponse Inspect(bool chunk_hashes) const;
  // Part of a heartbeat; with the report in PHASE_REPORTING.
  v1::ShardStatus Status(bool report) const;

  uint64_t map_epoch() const { return map_epoch_; }
  uint64_t version() const { return version_; }
  size_t elements() const { return elements_; }

 private:
  struct WaitingPull {
    uint64_t version;
  };

  Shard(std::shared_ptr<const ShardJob> job, uint64_t map_epoch, const v1::Shard& place,
        size_t elements);
  // With memory for everything, and nothing in it.
  static absl::StatusOr<std::unique_ptr<Shard>> CreateBlank(std::shared_ptr<const ShardJob> job,
                                                            const v1::ClusterMap& map, int number);

  static int FindVariable(const Model& model, const std::string& name);  // -1: none.
  static absl::StatusOr<size_t> CountElements(const ShardJob& job, const v1::ClusterMap& map,
                                              int number);
  bool synchronous() const { return job_->spec.training().consistency().has_sync(); }
  absl::Status CheckEpoch(uint64_t map_epoch) const;
  absl::Status CheckBlocks(const v1::Push& push) const;
  absl::Status CheckSums(const v1::Push& push) const;
  absl::Status CheckSkipped(const v1::Push& push) const;
  // For people: "a[7]".
  std::string ElementName(size_t element) const;

  absl::Status TakeState(const v1::ShardState& state);
  v1::ShardState State() const;
  std::shared_ptr<const Buffer> FrozenWeights();

  void PushSynchronous(uint64_t call, const v1::Push& push, Payload gradient,
                       std::vector<ShardAnswer>* answers);
  void PushAsynchronous(uint64_t call, const v1::Push& push, Payload gradient,
                        std::vector<ShardAnswer>* answers);
  void CompleteStep();
  void ApplyInPlace(Payload gradient);
  // One update, from the weights `from` to `to`, which may be the same. False: the sum is not
  // finite, and failure_ is set.
  bool Apply(const ReductionTree& tree, const Buffer& from, Buffer* to);
  v1::Sums* EpochOf(uint64_t step);
  google::protobuf::RepeatedPtrField<v1::Interval> Intervals() const;
  void AnswerWaiting(std::vector<ShardAnswer>* answers);
  std::string ChunkHashes() const;

  std::shared_ptr<const ShardJob> job_;
  uint64_t map_epoch_;
  v1::Shard place_;
  size_t elements_;

  uint64_t version_ = 0;
  uint64_t updates_ = 0;              // The optimizer's step count.
  std::shared_ptr<Buffer> weights_;   // Of version_.
  std::shared_ptr<Buffer> previous_;  // Of version_ - 1, or what the next update may write.
  bool previous_needed_ = false;      // Some shard may not have reached version_.
  std::vector<std::shared_ptr<Buffer>> slots_;
  // Alive: a snapshot holds weights_, by way of this. (Pulls hold weights_ too, and do not count.)
  std::weak_ptr<const std::shared_ptr<Buffer>> frozen_weights_;

  ReductionTree tree_;
  std::vector<v1::Sums> step_sums_;  // By micro-batch of the step being reduced.
  bool step_skipped_ = false;        // That step will change nothing.
  std::vector<v1::Sums> epochs_;     // What was applied.
  AppliedSet applied_;
  std::map<uint64_t, WaitingPull> waiting_;  // By call.
  uint64_t duplicates_ignored_ = 0;
  size_t peak_staged_bytes_ = 0;
  absl::Status failure_;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_SHARD_H_
