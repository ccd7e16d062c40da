#include "common/rpc/membership.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {

Membership::Membership(Options options, int64_t now_ms)
    : options_(std::move(options)), backoff_(options_.jitter_seed), heard_ms_(now_ms) {}

Membership::Next Membership::OnRegistered(int64_t now_ms,
                                          const absl::StatusOr<v1::RegisterResponse>& response) {
  if (!response.ok()) return Failed(now_ms, response.status());
  heard_ms_ = now_ms;
  trouble_ = absl::OkStatus();
  backoff_.Reset();
  job_ = *response;
  node_ = response->node();
  state_.set_sequence(0);  // Another life of the coordinator counts anew.
  return {Next::kHeartbeat, 0, {}};
}

Membership::Next Membership::OnHeartbeat(int64_t now_ms,
                                         const absl::StatusOr<v1::HeartbeatResponse>& response) {
  if (!response.ok()) return Failed(now_ms, response.status());
  heard_ms_ = now_ms;
  trouble_ = absl::OkStatus();
  backoff_.Reset();
  if (response->has_state()) state_ = response->state();
  return OnTime(now_ms);
}

Membership::Next Membership::OnTime(int64_t now_ms) {
  return {registered() ? Next::kHeartbeat : Next::kRegister, 0, {}};
}

Membership::Next Membership::Failed(int64_t now_ms, const absl::Status& status) {
  trouble_ = status;
  if (status.code() == absl::StatusCode::kPermissionDenied) return {Next::kGiveUp, 0, status};
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    Forget();
    heard_ms_ = now_ms;  // It is there, and does not know us.
  }
  if (now_ms - heard_ms_ >= options_.give_up_ms) {
    return {Next::kGiveUp, 0,
            absl::UnavailableError(absl::StrCat("the coordinator has not answered for ",
                                                (now_ms - heard_ms_) / 1000,
                                                " s: ", std::string(status.message())))};
  }
  return {Next::kWait, now_ms + backoff_.NextMs(), {}};
}

v1::HeartbeatRequest Membership::heartbeat() const {
  v1::HeartbeatRequest request;
  request.set_node(node_);
  request.set_incarnation(options_.registration.incarnation());
  request.set_seen(state_.sequence());
  return request;
}

}  // namespace tandem
