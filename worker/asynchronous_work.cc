// Asynchronous and bounded training: each micro-batch by itself, against whatever the shards hold
// when it is begun. As many as there are threads are computed, and the weights of `prefetch` more
// are fetched meanwhile, which hides transfer. The push of one brings the weights of the next.
#include <deque>
#include <map>
#include <utility>

#include "worker/work.h"

namespace tandem {
namespace {

// Of the weights cache: its versions are numbers of our own here.
struct Run {
  uint64_t step;
  Node node;
  std::string skipped;  // Why it is left out, once it is computed.
};

class AsynchronousWork : public WorkKind {
 public:
  explicit AsynchronousWork(int prefetch) : prefetch_(prefetch) {}

  void Add(const v1::Work& work) override {
    for (uint64_t step = work.step_begin(); step < work.step_end(); ++step) {
      waiting_.push_back({step, {work.level(), work.index()}, ""});
    }
  }

  void Continue(Desk* desk) override {
    while (CanBegin(desk)) desk->Fetch(Begin(), 0, {});
  }

  void OnPushed(Desk* desk, uint64_t transfer) override {
    auto it = pushing_.find(transfer);
    if (it == pushing_.end()) return;
    const Run& run = it->second;
    desk->Finish(run.step, run.node, run.skipped);
    pushing_.erase(it);
    Continue(desk);
  }

  void OnWeights(Desk* desk, uint64_t key) override {
    auto it = fetching_.find(key);
    if (it == fetching_.end()) return;
    const uint64_t task = (*desk->next_task)++;
    desk->actions->push_back(
        ComputeGradient{task, it->second.step, it->second.node, desk->weights.Find(key)});
    desk->weights.Drop(key);
    computing_[task] = it->second;
    fetching_.erase(it);
  }

  void OnPast(Desk* desk, uint64_t key) override {}  // No version is asked for, so none is past.

  bool OnTask(Desk* desk, uint64_t task, const TaskResult& result) override {
    auto it = computing_.find(task);
    if (it == computing_.end()) return false;
    Run run = std::move(it->second);
    computing_.erase(it);
    run.skipped = result.gradient->skipped;
    const uint64_t transfer =
        CanBegin(desk)
            ? desk->Fetch(Begin(), 0, {result.gradient})
            : desk->transfers.Start(desk->now_ms, {result.gradient}, {}, nullptr, desk->actions);
    pushing_[transfer] = std::move(run);
    return true;
  }

  uint64_t outstanding() const override {
    return waiting_.size() + fetching_.size() + computing_.size() + pushing_.size();
  }

 private:
  bool CanBegin(const Desk* desk) const {
    return !waiting_.empty() &&
           fetching_.size() + computing_.size() <
               static_cast<size_t>(desk->threads) + static_cast<size_t>(prefetch_);
  }
  // Takes the next micro-batch; the key its weights will have.
  uint64_t Begin() {
    const uint64_t key = next_key_++;
    fetching_[key] = waiting_.front();
    waiting_.pop_front();
    return key;
  }

  const int prefetch_;
  std::deque<Run> waiting_;
  uint64_t next_key_ = 1;
  std::map<uint64_t, Run> fetching_;   // By key of the weights.
  std::map<uint64_t, Run> computing_;  // By task.
  std::map<uint64_t, Run> pushing_;    // By transfer.
};

}  // namespace

std::unique_ptr<WorkKind> NewAsynchronousWork(int prefetch) {
  return std::make_unique<AsynchronousWork>(prefetch);
}

}  // namespace tandem
