// What a server has of one shard of the cluster map, and what is under way for it.
#ifndef TANDEM_PS_SERVER_HOLDING_H_
#define TANDEM_PS_SERVER_HOLDING_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "common/rpc/backoff.h"
#include "common/rpc/payload.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps_server/shard.h"

namespace tandem {

// A push that the standby does not have yet.
struct WaitingPush {
  uint64_t call = 0;  // 0: nobody waits for the answer any more.
  v1::Push push;
  Payload gradient;
};

// The Replicate stream from a primary to its standby.
struct StandbyLink {
  uint64_t id = 0;            // 0: closed.
  uint64_t acknowledged = 0;  // Messages, the first of which is `begin`.
  bool filled = false;        // The standby has its content: no state goes with `begin`.
  int64_t open_again_ms = 0;  // When closed.
  std::string incarnation;    // Of the standby that is meant, and
  uint64_t since = 0;         // its Holder.since.
  Backoff backoff{0};
};

struct Holding {
  uint64_t since = 0;
  bool standby = false;
  std::unique_ptr<Shard> shard;  // Null: its content is not there.

  // Making the content from a checkpoint.
  uint64_t load = 0;           // Under way.
  int64_t load_again_ms = -1;  // -1: not to be tried again.
  std::string trouble;         // As in ShardStatus.
  bool checkpoint_damaged = false;

  // Writing it to one.
  uint64_t save = 0;        // Under way.
  uint64_t saved_step = 0;  // The newest cut that a save was begun for.
  v1::SavedShard saved;     // The last one that ended.

  // Primary with a standby: pushes in the order in which they were taken.
  std::deque<WaitingPush> waiting;
  StandbyLink link;

  // Standby: the call of Replicate that feeds it, and its messages so far.
  uint64_t replica_call = 0;
  uint64_t replica_messages = 0;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_HOLDING_H_
