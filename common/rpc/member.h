// Drives a Membership over gRPC, for servers and workers alike.
#ifndef TANDEM_COMMON_RPC_MEMBER_H_
#define TANDEM_COMMON_RPC_MEMBER_H_

#include <functional>
#include <memory>
#include <string>

#include "common/base/log.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/membership.h"
#include "proto/coordinator.grpc.pb.h"

namespace tandem {

// A new random name for this process's life.
std::string NewIncarnation();

// Not thread-safe: everything runs on the loop's thread.
class Member {
 public:
  struct Callbacks {
    std::function<void()> on_registered;  // membership().job() is new; local work is void.
    std::function<void()> on_state;       // membership().state() is new.
    std::function<void(v1::HeartbeatRequest*)> fill_heartbeat;
    std::function<void(const absl::Status&)> on_give_up;
  };

  // `coordinator` is HOST:PORT.
  Member(EventLoop* loop, std::string coordinator, Membership::Options options,
         Callbacks callbacks);

  void Start();
  Membership& membership() { return membership_; }
  v1::Coordinator::Stub* stub() { return stub_.get(); }

  // What `fill_heartbeat` says has changed, and the coordinator should know now.
  void SayNews() { Do(membership_.OnNews()); }
  // Says a last word (`leaving`, or an error in `fatal`), then calls `done`, at the latest after a
  // second.
  void SayLast(const std::string& fatal, std::function<void()> done);

 private:
  void Do(const Membership::Next& next);
  void SayTrouble();

  EventLoop* loop_;
  std::string coordinator_;
  Membership membership_;
  Callbacks callbacks_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  LogEvery trouble_log_;
  bool ended_ = false;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_MEMBER_H_
