// Evaluation: chunks of the test examples, all with the same weights, fetched once.
#include <deque>
#include <map>
#include <utility>

#include "worker/work.h"

namespace tandem {
namespace {

// Keys of the weights cache: evaluation's own, apart from those of training.
constexpr uint64_t kEvaluationKeys = uint64_t{1} << 62;

class EvaluationWork : public WorkKind {
 public:
  explicit EvaluationWork(bool synchronous) : synchronous_(synchronous) {}

  void Add(const v1::Work& work) override {
    if (work.step_begin() != step_) waiting_.clear();  // Of an evaluation that is over.
    step_ = work.step_begin();
    waiting_.push_back(work.index());
  }

  void Continue(Desk* desk) override {
    if (waiting_.empty()) return;
    const uint64_t key = kEvaluationKeys + step_;
    if (held_key_ != key) desk->weights.Drop(held_key_);
    held_key_ = key;
    std::shared_ptr<const Buffer> weights = desk->weights.Find(key);
    if (weights == nullptr) {
      if (!desk->weights.IsFetching(key)) desk->Fetch(key, synchronous_ ? step_ : 0, {});
      return;
    }
    while (!waiting_.empty() && computing_.size() < static_cast<size_t>(desk->threads)) {
      const uint64_t task = (*desk->next_task)++;
      desk->actions->push_back(EvaluateChunk{task, waiting_.front(), weights});
      computing_[task] = {step_, waiting_.front()};
      waiting_.pop_front();
    }
  }

  void OnPushed(Desk* desk, uint64_t transfer) override {}
  void OnWeights(Desk* desk, uint64_t key) override { Continue(desk); }
  // Training goes on only when this evaluation is over: another worker has done it.
  void OnPast(Desk* desk, uint64_t key) override {
    if (key == kEvaluationKeys + step_) waiting_.clear();
  }

  bool OnTask(Desk* desk, uint64_t task, const TaskResult& result) override {
    auto it = computing_.find(task);
    if (it == computing_.end()) return false;
    v1::FinishedWork& work = desk->finished.emplace_back();
    work.set_map_epoch(desk->map_epoch);
    work.set_evaluation(true);
    work.set_step(it->second.step);
    work.set_index(it->second.chunk);
    *work.mutable_sums() = result.sums;
    computing_.erase(it);
    Continue(desk);
    return true;
  }

  uint64_t outstanding() const override { return waiting_.size() + computing_.size(); }

 private:
  struct Chunk {
    uint64_t step, chunk;
  };

  const bool synchronous_;
  uint64_t step_ = 0, held_key_ = 0;
  std::deque<uint64_t> waiting_;
  std::map<uint64_t, Chunk> computing_;  // By task.
};

}  // namespace

std::unique_ptr<WorkKind> NewEvaluationWork(bool synchronous) {
  return std::make_unique<EvaluationWork>(synchronous);
}

}  // namespace tandem
