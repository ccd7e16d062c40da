// A server's core: the shards that the cluster map gives to this process, where their content comes
// from, and what goes to a standby before anybody is told. Pure: events and time in, actions out;
// the shell moves bytes and reads and writes the disk. docs/failures.md has the rules.
#ifndef TANDEM_PS_SERVER_SERVER_LOOP_H_
#define TANDEM_PS_SERVER_SERVER_LOOP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/shard_tensors.h"
#include "ps_server/holding.h"
#include "ps_server/shard.h"

namespace tandem {

// Read the blocks of a shard from a checkpoint and report to OnLoaded.
struct LoadShard {
  uint64_t load = 0;  // Names it in the event.
  std::string checkpoint;
  std::vector<v1::Block> blocks;
};

// Write a part of a checkpoint (WriteShard) and report to OnSaved. One at a time of each shard.
struct SaveShard {
  uint64_t save = 0;
  std::string aside;  // The folder.
  int shard = 0, shards = 0;
  uint64_t step = 0;
  ShardTensors tensors;
};

// Open a Replicate stream to a standby. It is `link` in what follows; events of links that were
// closed are ignored by the core.
struct OpenLink {
  uint64_t link = 0;
  std::string address;
  v1::ReplicaBegin begin;
  Payload state;  // Goes with `begin.state`.
};
// Send a push over it.
struct SendPush {
  uint64_t link = 0;
  v1::Push push;
  Payload gradient;
};
struct CloseLink {
  uint64_t link = 0;
};

// Tell the coordinator now: send a heartbeat though one is under way.
struct SayNews {};

// Call OnTime at `at_ms`, or sooner.
struct WakeServerAt {
  int64_t at_ms = 0;
};

// The status of the call of Replicate with this number: FAILED_PRECONDITION and the like end it.
struct EndReplica {
  uint64_t call = 0;
  absl::Status status;
};
// `acknowledged` of a call of Replicate.
struct AckReplica {
  uint64_t call = 0;
  uint64_t acknowledged = 0;
};

// This server cannot go on.
struct FailServer {
  absl::Status status;
};

using ServerAction = std::variant<ShardAnswer, LoadShard, SaveShard, OpenLink, SendPush, CloseLink,
                                  SayNews, WakeServerAt, EndReplica, AckReplica, FailServer>;
using ServerActions = std::vector<ServerAction>;

// Not thread-safe.
class ServerLoop {
 public:
  // `incarnation` of this process. `job` as registered. `checkpoints`: there is a place for them.
  ServerLoop(std::string incarnation, std::shared_ptr<const ShardJob> job, bool checkpoints,
             uint64_t jitter_seed);

  // The cluster's state is new.
  void OnState(int64_t now_ms, const v1::ClusterState& state, ServerActions* actions);
  void OnLoaded(int64_t now_ms, uint64_t load, absl::StatusOr<ShardTensors> tensors,
                ServerActions* actions);
  void OnSaved(int64_t now_ms, uint64_t save, const absl::StatusOr<v1::SavedShard>& saved,
               ServerActions* actions);
  void OnTime(int64_t now_ms, ServerActions* actions);

  // The data path, as in Shard; the push or pull names its shard. A push's answer may come later,
  // when the standby has it; answers of one call come in the order of its operations.
  absl::StatusOr<size_t> CheckPush(const v1::Push& push) const;
  absl::Status NonFiniteError(const v1::Push& push, size_t element) const;
  void Push(int64_t now_ms, uint64_t call, const v1::Push& push, Payload gradient,
            ServerActions* actions);
  void Pull(int64_t now_ms, uint64_t call, const v1::Pull& pull, ServerActions* actions);
  void Cancel(uint64_t call);

  // Primary: the standby has `acknowledged` messages of the link; it broke.
  void OnLinkAck(int64_t now_ms, uint64_t link, uint64_t acknowledged, ServerActions* actions);
  void OnLinkBroken(int64_t now_ms, uint64_t link, const absl::Status& status,
                    ServerActions* actions);

  // Standby: call `call` of Replicate begins: the bytes that the state's payload must have, or the
  // refusal. Then its state (when there is one) is complete; then pushes, each checked first.
  absl::StatusOr<size_t> CheckReplica(const v1::ReplicaBegin& begin) const;
  void OnReplica(int64_t now_ms, uint64_t call, const v1::ReplicaBegin& begin, Payload state,
                 ServerActions* actions);
  absl::StatusOr<size_t> CheckReplicaPush(uint64_t call, const v1::Push& push) const;
  void OnReplicaPush(int64_t now_ms, uint64_t call, const v1::Push& push, Payload gradient,
                     ServerActions* actions);
  void OnReplicaGone(uint64_t call);

  // For the heartbeat; with reports in PHASE_REPORTING.
  v1::ServerStatus Status() const;
  // NOT_FOUND when this server does not hold the shard.
  absl::StatusOr<v1::InspectResponse> Inspect(const v1::InspectRequest& request) const;

  // It has been given shards, and all their content is there: health checks are answered with yes.
  bool serving() const;
  // Of gradients that wait for a standby.
  size_t waiting_bytes() const { return waiting_bytes_; }

 private:
  // The content of a shard that this server is the primary of.
  absl::StatusOr<Shard*> FindPrimary(uint32_t shard, uint64_t map_epoch) const;
  // The holding that a call of Replicate feeds; null when there is none.
  Holding* FindReplica(uint64_t call);
  const Holding* FindReplica(uint64_t call) const;
  const v1::Holder& StandbyOf(uint32_t shard) const;

  // Taking in a map.
  void TakeRole(uint32_t shard, const v1::Holder& holder, bool standby,
                std::map<uint32_t, Holding>* before, ServerActions* actions);
  void Keep(uint32_t shard, Holding holding, bool standby, ServerActions* actions);
  // Ends everything that is under way for it.
  void Release(Holding* holding, ServerActions* actions);
  // Does whatever is due, for all shards or for one.
  void Work(int64_t now_ms, ServerActions* actions);
  void Work(int64_t now_ms, uint32_t shard, Holding* holding, ServerActions* actions);
  void MakeContent(int64_t now_ms, uint32_t shard, Holding* holding, ServerActions* actions);
  void SaveCut(uint32_t shard, Holding* holding, ServerActions* actions);

  // A primary and its standby.
  void OpenStandby(int64_t now_ms, uint32_t shard, Holding* holding, ServerActions* actions);
  void CloseStandby(int64_t now_ms, Holding* holding, ServerActions* actions);
  void ApplyFirstWaiting(uint32_t shard, Holding* holding, ServerActions* actions);
  void Apply(uint32_t shard, Holding* holding, uint64_t call, const v1::Push& push,
             Payload gradient, ServerActions* actions);

  std::string incarnation_;
  std::shared_ptr<const ShardJob> job_;
  bool checkpoints_;
  uint64_t jitter_seed_;
  v1::ClusterMap map_;
  v1::Phase phase_ = v1::PHASE_UNSPECIFIED;
  std::map<uint32_t, Holding> holdings_;  // By shard.
  uint64_t next_id_ = 1;                  // Of loads, saves and links.
  size_t waiting_bytes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_SERVER_LOOP_H_
