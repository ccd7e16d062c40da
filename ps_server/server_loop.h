// A server's core: the shards that the cluster map gives to this process, where their content comes
// from, and what goes to a standby before anybody is told. Pure: events and time in, actions out;
// the shell moves bytes and reads and writes the disk. docs/failures.md has the rules.
#ifndef TANDEM_PS_SERVER_SERVER_LOOP_H_
#define TANDEM_PS_SERVER_SERVER_LOOP_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/rpc/backoff.h"
#include "ps_server/shard.h"

namespace tandem {

// Read the blocks of a shard from a checkpoint and report to OnLoaded.
struct LoadShard {
  uint64_t load = 0;  // Names it in the event.
  std::string checkpoint;
  std::vector<v1::Block> blocks;
};

// Write a part of a checkpoint (WriteShard) and report to OnSaved. One at a time.
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
  // `incarnation` of this process. `job` as registered; `state_dir` empty: no checkpoints.
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

  // Every shard that it has been given is there: health checks are answered with yes.
  bool serving() const;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_SERVER_LOOP_H_
