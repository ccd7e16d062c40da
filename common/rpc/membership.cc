#include "common/rpc/membership.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

constexpr int kMaxHeartbeats = 2;
// Holders of a shard have one lease time to come back to a coordinator that was restarted.
constexpr BackoffOptions kBackoff{.first_ms = 20, .max_ms = 500};

// The job and its data: everything that is not about the registration.
std::string WorkOf(v1::RegisterResponse response) {
  response.clear_node();
  response.clear_heartbeat_hold_ms();
  response.clear_lease_hold_ms();
  response.clear_state_dir();
  return response.SerializeAsString();
}

}  // namespace

Membership::Membership(Options options, int64_t now_ms)
    : options_(std::move(options)), backoff_(options_.jitter_seed, kBackoff), heard_ms_(now_ms) {}

Membership::Next Membership::OnRegistered(int64_t now_ms,
                                          const absl::StatusOr<v1::RegisterResponse>& response) {
  if (!response.ok()) return Failed(now_ms, response.status());
  if (job_.node() != 0 && WorkOf(job_) != WorkOf(*response)) {
    return {Next::kGiveUp, 0,
            absl::UnavailableError(absl::StrCat(
                "the coordinator was restarted with another job (\"", response->job().name(),
                "\") or other data; start this process again to take part in it"))};
  }
  job_ = *response;
  node_ = response->node();
  state_.set_sequence(0);  // Another life of the coordinator counts anew.
  answered_ = false;
  return Heard(now_ms);
}

Membership::Next Membership::OnHeartbeat(int64_t now_ms,
                                         const absl::StatusOr<v1::HeartbeatResponse>& response) {
  --heartbeats_;
  if (!response.ok()) return Failed(now_ms, response.status());
  answered_ = true;
  // The answers of two heartbeats may come in any order.
  if (response->has_state() && response->state().sequence() > state_.sequence()) {
    state_ = response->state();
  }
  return Heard(now_ms);
}

Membership::Next Membership::Heard(int64_t now_ms) {
  heard_ms_ = now_ms;
  trouble_ = absl::OkStatus();
  backoff_.Reset();
  if (heartbeats_ > 0 && !(news_ && registered())) return {Next::kNothing, 0, {}};
  return registered() ? SendHeartbeat() : Start();
}

Membership::Next Membership::OnTime(int64_t now_ms) {
  waiting_ = false;
  return registered() ? SendHeartbeat() : Start();
}

Membership::Next Membership::OnNews() {
  if (!registered() || waiting_) return {Next::kNothing, 0, {}};  // The next one brings them.
  news_ = heartbeats_ >= kMaxHeartbeats;
  return news_ ? Next{Next::kNothing, 0, {}} : SendHeartbeat();
}

Membership::Next Membership::SendHeartbeat() {
  ++heartbeats_;
  news_ = false;
  return {Next::kHeartbeat, 0, {}};
}

Membership::Next Membership::Failed(int64_t now_ms, const absl::Status& status) {
  trouble_ = status;
  if (status.code() == absl::StatusCode::kPermissionDenied) return {Next::kGiveUp, 0, status};
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    Forget();
    heard_ms_ = now_ms;  // It is there, and does not know us.
    if (answered_ && heartbeats_ == 0) {
      answered_ = false;  // At once, but not again and again.
      return Start();
    }
  }
  if (now_ms - heard_ms_ >= options_.give_up_ms) {
    return {Next::kGiveUp, 0, GaveUp(now_ms, status)};
  }
  if (heartbeats_ > 0) return {Next::kNothing, 0, {}};
  waiting_ = true;
  return {Next::kWait, now_ms + backoff_.NextMs(), {}};
}

absl::Status Membership::GaveUp(int64_t now_ms, const absl::Status& status) const {
  const std::string why =
      absl::StrCat(" for ", (now_ms - heard_ms_) / 1000, " s: ", std::string(status.message()));
  if (status.code() == absl::StatusCode::kInvalidArgument) {
    return absl::InvalidArgumentError(
        absl::StrCat("the coordinator has refused this process's calls", why));
  }
  return absl::UnavailableError(absl::StrCat("the coordinator has not answered", why));
}

v1::HeartbeatRequest Membership::heartbeat() const {
  v1::HeartbeatRequest request;
  request.set_node(node_);
  request.set_incarnation(options_.registration.incarnation());
  request.set_seen(state_.sequence());
  return request;
}

}  // namespace tandem
