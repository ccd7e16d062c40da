// A thread beside an event loop for what may block on a disk: work runs there one after the other,
// what follows runs on the loop.
#ifndef TANDEM_COMMON_RPC_BACKGROUND_H_
#define TANDEM_COMMON_RPC_BACKGROUND_H_

#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/event_loop.h"

namespace tandem {

class Background {
 public:
  // `loop` must outlive this.
  explicit Background(EventLoop* loop);
  // Waits for the work under way; drops what has not begun.
  ~Background();

  // Runs `work` on the thread, then what it returned on the loop (nothing when that has stopped).
  // Thread-safe.
  void Run(std::function<std::function<void()>()> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Due() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !queue_.empty(); }

  EventLoop* loop_;
  absl::Mutex mutex_;
  std::deque<std::function<std::function<void()>()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_BACKGROUND_H_
