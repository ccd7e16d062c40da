// How a server or worker belongs to the cluster: it registers, then keeps a heartbeat with the
// coordinator in flight, which tells it the cluster's state. Pure: answers and time in, calls to
// make out.
#ifndef TANDEM_COMMON_RPC_MEMBERSHIP_H_
#define TANDEM_COMMON_RPC_MEMBERSHIP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/backoff.h"
#include "proto/coordinator.pb.h"

namespace tandem {

// Not thread-safe.
class Membership {
 public:
  struct Options {
    v1::RegisterRequest registration;  // Role, incarnation, address, instruction set.
    int64_t give_up_ms = 30000;        // Without an answer of the coordinator for so long.
    uint64_t jitter_seed = 0;
  };

  // What to do next. At most one call is in flight.
  struct Next {
    enum Kind {
      kRegister,   // Send registration() and report to OnRegistered.
      kHeartbeat,  // Send heartbeat() and report to OnHeartbeat.
      kWait,       // Call OnTime at `at_ms`.
      kGiveUp,  // `status` says why: UNAVAILABLE (may be cured by a restart) or PERMISSION_DENIED.
    } kind = kRegister;
    int64_t at_ms = 0;
    absl::Status status;
  };

  Membership(Options options, int64_t now_ms);

  Next Start() { return {Next::kRegister, 0, {}}; }
  Next OnRegistered(int64_t now_ms, const absl::StatusOr<v1::RegisterResponse>& response);
  Next OnHeartbeat(int64_t now_ms, const absl::StatusOr<v1::HeartbeatResponse>& response);
  Next OnTime(int64_t now_ms);
  // Another call found that the coordinator does not know this process: register again.
  void Forget() { node_ = 0; }

  const v1::RegisterRequest& registration() const { return options_.registration; }
  // Its server part is the caller's to fill in.
  v1::HeartbeatRequest heartbeat() const;

  bool registered() const { return node_ != 0; }
  uint64_t node() const { return node_; }
  // The answer to the last registration; empty before the first.
  const v1::RegisterResponse& job() const { return job_; }
  const v1::ClusterState& state() const { return state_; }
  // Since when the coordinator has not answered; for the log line of a process that waits.
  int64_t heard_ms() const { return heard_ms_; }
  // Why the last attempt failed; ok when it did not.
  const absl::Status& trouble() const { return trouble_; }

 private:
  Next Failed(int64_t now_ms, const absl::Status& status);

  Options options_;
  Backoff backoff_;
  int64_t heard_ms_;
  uint64_t node_ = 0;
  v1::RegisterResponse job_;
  v1::ClusterState state_;
  absl::Status trouble_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_MEMBERSHIP_H_
