// How a server or worker belongs to the cluster: it registers, then keeps a heartbeat with the
// coordinator in flight, which tells it the cluster's state. News of its own go out with a second
// heartbeat, which the coordinator takes in the place of the first. Pure: answers and time in,
// calls to make out.
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

  // What to do next. At most one registration, or two heartbeats, are in flight.
  struct Next {
    enum Kind {
      kRegister,   // Send registration() and report to OnRegistered.
      kHeartbeat,  // Send heartbeat() and report to OnHeartbeat.
      kWait,       // Call OnTime at `at_ms`.
      kNothing,    // What is in flight is enough.
      kGiveUp,     // `status` says why: UNAVAILABLE may be cured by a restart, another may not.
    } kind = kRegister;
    int64_t at_ms = 0;
    absl::Status status;
  };

  Membership(Options options, int64_t now_ms);

  Next Start() { return {Next::kRegister, 0, {}}; }
  // UNAVAILABLE in kGiveUp also when a coordinator that was restarted has another job, or other
  // data: what this process holds was made for those of before.
  Next OnRegistered(int64_t now_ms, const absl::StatusOr<v1::RegisterResponse>& response);
  Next OnHeartbeat(int64_t now_ms, const absl::StatusOr<v1::HeartbeatResponse>& response);
  Next OnTime(int64_t now_ms);
  // The next heartbeat() says something that the coordinator should know now.
  Next OnNews();
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
  Next SendHeartbeat();
  Next Heard(int64_t now_ms);
  Next Failed(int64_t now_ms, const absl::Status& status);
  absl::Status GaveUp(int64_t now_ms, const absl::Status& status) const;

  Options options_;
  Backoff backoff_;
  int64_t heard_ms_;
  uint64_t node_ = 0;
  int heartbeats_ = 0;     // In flight.
  bool waiting_ = false;   // To try again, with nothing in flight.
  bool news_ = false;      // Came when two were in flight already.
  bool answered_ = false;  // A heartbeat, since the last registration.
  v1::RegisterResponse job_;
  v1::ClusterState state_;
  absl::Status trouble_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_MEMBERSHIP_H_
