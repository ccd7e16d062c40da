#include "common/rpc/event_loop.h"

#include <grpcpp/alarm.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace tandem {
namespace {

constexpr int kDrainPollMs = 5;
// Falling asleep and being woken takes about as long.
constexpr std::chrono::microseconds kShortWait(50);

}  // namespace

// Brings the loop to its posted tasks. One serves for all: it is set again only when it has run.
class EventLoop::Wake : public EventLoop::Tag {
 public:
  explicit Wake(EventLoop* loop) : loop_(loop) {}
  void Set() {
    // Past for certain: gRPC rounds times up to whole milliseconds, and would wait for the next
    // one.
    alarm_.Set(loop_->queue(), gpr_inf_past(GPR_CLOCK_MONOTONIC), this);
  }
  void Run(bool ok) override { loop_->RunPosted(); }

 private:
  EventLoop* loop_;
  grpc::Alarm alarm_;
};

EventLoop::EventLoop(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), wake_(std::make_unique<Wake>(this)) {
  // Debian's Abseil looks for lock cycles at every lock, gRPC's own ones too: some 2 % of the time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

EventLoop::~EventLoop() = default;

int64_t EventLoop::NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void EventLoop::Run(const std::function<void()>& on_stop,
                    const std::function<void()>& while_draining) {
  while (!stopping_) {
    RunTimers();
    if (stopping_) break;
    gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (!idle_.empty()) {
      deadline = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    } else if (!timers_.empty()) {
      const int64_t wait_ms = timers_.begin()->first.first - NowMs();
      deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                              gpr_time_from_millis(wait_ms > 0 ? wait_ms : 0, GPR_TIMESPAN));
    }
    void* tag;
    bool ok;
    if (Wait(deadline, &tag, &ok)) {
      static_cast<Tag*>(tag)->Run(ok);
      if (idle_.empty() || ++busy_events_ < kBusyEvents) continue;
    }
    RunIdle();
  }
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  void* tag;
  bool ok;
  if (on_stop) on_stop();
  if (while_draining) {
    std::atomic<bool> ready = false;
    std::thread helper([&] {
      while_draining();
      ready = true;
    });
    while (!ready) {
      const gpr_timespec soon = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                             gpr_time_from_millis(kDrainPollMs, GPR_TIMESPAN));
      if (queue_->AsyncNext(&tag, &ok, soon) == grpc::CompletionQueue::GOT_EVENT) {
        static_cast<Tag*>(tag)->Run(ok);
      }
    }
    helper.join();
  }
  queue_->Shutdown();
  while (queue_->Next(&tag, &ok)) static_cast<Tag*>(tag)->Run(ok);
  timers_.clear();
  idle_.clear();
}

bool EventLoop::Wait(gpr_timespec deadline, void** tag, bool* ok) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Clock::time_point now = begin;
  bool got = false;
  if (short_waits_ && idle_.empty()) {
    const gpr_timespec past = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    while (!got && now - begin < kShortWait) {
      got = queue_->AsyncNext(tag, ok, past) == grpc::CompletionQueue::GOT_EVENT;
      if (!got) sched_yield();
      now = Clock::now();
    }
  }
  if (!got) {
    got = queue_->AsyncNext(tag, ok, deadline) == grpc::CompletionQueue::GOT_EVENT;
    now = Clock::now();
  }
  short_waits_ = got && now - begin < kShortWait;
  return got;
}

EventLoop::TimerId EventLoop::At(int64_t at_ms, std::function<void()> task) {
  const TimerId id{at_ms, next_timer_++};
  timers_.emplace(id, std::move(task));
  return id;
}

void EventLoop::RunTimers() {
  if (timers_.empty()) return;
  const int64_t now = NowMs();
  while (!timers_.empty() && timers_.begin()->first.first <= now && !stopping_) {
    std::function<void()> task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
}

void EventLoop::RunIdle() {
  busy_events_ = 0;
  std::vector<std::function<void()>> tasks;
  tasks.swap(idle_);
  for (std::function<void()>& task : tasks) task();
}

void EventLoop::Post(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  posted_.push_back(std::move(task));
  if (posted_.size() == 1) wake_->Set();
}

void EventLoop::RunPosted() {
  std::deque<std::function<void()>> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks.swap(posted_);
  }
  for (std::function<void()>& task : tasks) {
    if (!stopping_) task();
  }
}

}  // namespace tandem
