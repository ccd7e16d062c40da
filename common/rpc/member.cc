#include "common/rpc/member.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/unary.h"

namespace tandem {
namespace {

// Past the coordinator's hold, so that only a coordinator that is not there lets a call time out.
constexpr std::chrono::milliseconds kCallTimeout(5000);
constexpr std::chrono::milliseconds kLastWordTimeout(1000);

}  // namespace

std::string NewIncarnation() {
  std::random_device random;
  return absl::StrFormat("%08x%08x-%d", random(), random(), getpid());
}

Member::Member(EventLoop* loop, std::string coordinator, Membership::Options options,
               Callbacks callbacks)
    : loop_(loop),
      coordinator_(std::move(coordinator)),
      membership_(std::move(options), EventLoop::NowMs()),
      callbacks_(std::move(callbacks)),
      stub_(v1::Coordinator::NewStub(CreateChannel(coordinator_))),
      trouble_log_(absl::Seconds(5)) {}

void Member::Start() { Do(membership_.Start()); }

void Member::Do(const Membership::Next& next) {
  if (ended_) return;
  switch (next.kind) {
    case Membership::Next::kRegister:
      UnaryCall<v1::RegisterResponse>::Start(
          loop_, kCallTimeout,
          [this](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return stub_->AsyncRegister(context, membership_.registration(), queue);
          },
          [this](const absl::StatusOr<v1::RegisterResponse>& response) {
            const Membership::Next after = membership_.OnRegistered(EventLoop::NowMs(), response);
            const bool registered = response.ok() && after.kind != Membership::Next::kGiveUp;
            if (registered && !ended_) callbacks_.on_registered();
            Do(after);
          });
      break;
    case Membership::Next::kHeartbeat: {
      v1::HeartbeatRequest request = membership_.heartbeat();
      callbacks_.fill_heartbeat(&request);
      UnaryCall<v1::HeartbeatResponse>::Start(
          loop_, kCallTimeout,
          [this, &request](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
            return stub_->AsyncHeartbeat(context, request, queue);
          },
          [this](const absl::StatusOr<v1::HeartbeatResponse>& response) {
            const uint64_t seen = membership_.state().sequence();
            const Membership::Next after = membership_.OnHeartbeat(EventLoop::NowMs(), response);
            if (membership_.state().sequence() != seen && !ended_) callbacks_.on_state();
            Do(after);
          });
      break;
    }
    case Membership::Next::kWait:
      SayTrouble();
      loop_->At(next.at_ms, [this] { Do(membership_.OnTime(EventLoop::NowMs())); });
      break;
    case Membership::Next::kNothing:
      break;
    case Membership::Next::kGiveUp:
      ended_ = true;
      callbacks_.on_give_up(next.status);
      break;
  }
}

void Member::SayTrouble() {
  const int64_t silent_ms = EventLoop::NowMs() - membership_.heard_ms();
  if (silent_ms < 1000 || !trouble_log_.Due(absl::Now())) return;
  Log(absl::StrCat("waiting for the coordinator at ", coordinator_, " for ", silent_ms / 1000,
                   " s: ", std::string(membership_.trouble().message())));
}

void Member::SayLast(const std::string& fatal, std::function<void()> done) {
  ended_ = true;
  if (!membership_.registered()) {
    done();
    return;
  }
  v1::HeartbeatRequest request = membership_.heartbeat();
  request.set_fatal(fatal);
  request.set_leaving(true);
  UnaryCall<v1::HeartbeatResponse>::Start(
      loop_, kLastWordTimeout,
      [this, &request](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->AsyncHeartbeat(context, request, queue);
      },
      [done = std::move(done)](const absl::StatusOr<v1::HeartbeatResponse>&) { done(); });
}

}  // namespace tandem
