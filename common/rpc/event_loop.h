// One completion queue, one thread: everything a process hears (calls, answers, timers, finished
// computations) runs here, one after the other, so what it drives needs no lock.
#ifndef TANDEM_COMMON_RPC_EVENT_LOOP_H_
#define TANDEM_COMMON_RPC_EVENT_LOOP_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tandem {

// Not thread-safe but for Post.
class EventLoop {
 public:
  // What a completion queue hands back. Deletes itself when it is done for.
  class Tag {
   public:
    virtual ~Tag() = default;
    // `ok` as gRPC gives it. Once loop.stopping(), it must begin no further operation.
    virtual void Run(bool ok) = 0;
  };

  explicit EventLoop(std::unique_ptr<grpc::CompletionQueue> queue);
  EventLoop() : EventLoop(std::make_unique<grpc::CompletionQueue>()) {}
  ~EventLoop();

  grpc::CompletionQueue* queue() { return queue_.get(); }

  // Runs until Stop is called, then calls `on_stop`, the place to cancel what still waits, and
  // drains the queue. `while_draining` runs meanwhile on a thread of its own: the place to shut a
  // server down, which waits for what ends on this queue. Both may be empty.
  void Run(const std::function<void()>& on_stop, const std::function<void()>& while_draining);
  void Stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

  // Milliseconds on a clock that does not go back.
  static int64_t NowMs();

  // Runs `task` on the loop at `at_ms` or soon after.
  using TimerId = std::pair<int64_t, uint64_t>;
  TimerId At(int64_t at_ms, std::function<void()> task);
  void Cancel(const TimerId& id) { timers_.erase(id); }

  // Runs `task` when nothing is ready on the queue, or after kBusyEvents events: what can be
  // gathered from several events, such as acknowledgements, then goes out at once for all of them.
  void WhenIdle(std::function<void()> task) { idle_.push_back(std::move(task)); }
  static constexpr int kBusyEvents = 64;

  // Runs `task` on the loop. Thread-safe; dropped when the loop has stopped.
  void Post(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Wake;

  // The next event, or false at `deadline`. When the last wait was short, it looks a while without
  // falling asleep: the answer to a small message comes sooner than a sleeper wakes.
  bool Wait(gpr_timespec deadline, void** tag, bool* ok);
  void RunTimers();
  void RunIdle();
  void RunPosted() ABSL_LOCKS_EXCLUDED(mutex_);

  std::unique_ptr<grpc::CompletionQueue> queue_;
  std::unique_ptr<Wake> wake_;
  bool stopping_ = false;
  std::map<TimerId, std::function<void()>> timers_;
  uint64_t next_timer_ = 0;
  bool short_waits_ = false;
  std::vector<std::function<void()>> idle_;
  int busy_events_ = 0;  // Since idle_ was last empty.

  absl::Mutex mutex_;
  std::deque<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_EVENT_LOOP_H_
