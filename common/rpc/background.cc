#include "common/rpc/background.h"

namespace tandem {

Background::Background(EventLoop* loop) : loop_(loop), thread_([this] { Work(); }) {}

Background::~Background() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  thread_.join();
}

void Background::Run(std::function<std::function<void()>()> work) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(work));
}

void Background::Work() {
  while (true) {
    std::function<std::function<void()>()> work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Background::Due));
      if (closed_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    loop_->Post(work());
  }
}

}  // namespace tandem
