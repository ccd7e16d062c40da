#include "coordinator/state_work.h"

#include <algorithm>

namespace tandem {
namespace {

bool IsRecord(const StateWork& work) { return std::holds_alternative<AppendRecord>(work); }

}  // namespace

void StateQueue::Add(v1::JournalRecord record) {
  auto at = queue_.begin() + (under_way_ ? 1 : 0);
  at = std::find_if_not(at, queue_.end(), IsRecord);
  queue_.insert(at, AppendRecord{std::move(record)});
}

void StateQueue::Add(Commit commit) { queue_.emplace_back(std::move(commit)); }

std::optional<StateWork> StateQueue::Take(int64_t now_ms) {
  if (under_way_ || queue_.empty() || now_ms < not_before_ms_) return std::nullopt;
  under_way_ = true;
  return queue_.front();
}

void StateQueue::Done() {
  queue_.pop_front();
  under_way_ = false;
  not_before_ms_ = INT64_MIN;
}

void StateQueue::Retry(int64_t at_ms) {
  under_way_ = false;
  not_before_ms_ = at_ms;
}

bool StateQueue::has_commits() const {
  return !queue_.empty() && !IsRecord(queue_.back());  // They are the last.
}

int64_t StateQueue::next_ms() const {
  return under_way_ || queue_.empty() ? INT64_MAX : not_before_ms_;
}

}  // namespace tandem
