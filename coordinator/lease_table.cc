#include "coordinator/lease_table.h"

#include <algorithm>

namespace tandem {

LeaseTable::LeaseTable(uint64_t first, uint64_t end, uint32_t width)
    : base_(first), end_(end), width_(width) {}

uint64_t LeaseTable::held(uint64_t worker) const {
  auto it = holders_.find(worker);
  return it == holders_.end() ? 0 : it->second.held;
}

uint64_t LeaseTable::free_below(uint64_t step_limit) const {
  step_limit = std::min(step_limit, end_);
  if (step_limit <= base_) return 0;
  uint64_t free = 0;
  const uint64_t known = std::min<uint64_t>(steps_.size(), step_limit - base_);
  for (uint64_t s = 0; s < known; ++s) free += steps_[s].free;
  return free + (step_limit - base_ - known) * width_;
}

LeaseTable::Step& LeaseTable::At(uint64_t step) {
  while (steps_.size() <= step - base_) {
    steps_.push_back({std::vector<uint64_t>(width_, kFree), width_, 0});
  }
  return steps_[step - base_];
}

std::vector<LeaseTable::Lease> LeaseTable::Take(uint64_t worker, uint32_t begin, uint32_t end,
                                                uint64_t budget, uint64_t step_limit) {
  return TakeUrgent(worker, begin, end, budget, step_limit, holders_[worker].frontier);
}

std::vector<LeaseTable::Lease> LeaseTable::TakeFirst(uint64_t worker, uint64_t most,
                                                     uint64_t step_limit) {
  return TakeUrgent(worker, 0, width_, most, step_limit, 0);
}

std::vector<LeaseTable::Lease> LeaseTable::TakeUrgent(uint64_t worker, uint32_t begin, uint32_t end,
                                                      uint64_t budget, uint64_t step_limit,
                                                      uint64_t urgent_end) {
  std::vector<Lease> leases;
  if (begin >= end) return leases;
  Holder& holder = holders_[worker];
  uint64_t given = 0;
  for (uint64_t s = base_; s < std::min(step_limit, end_); ++s) {
    if (s >= urgent_end && given >= budget) break;
    Step& step = At(s);
    if (step.free == 0) continue;
    for (uint32_t r = begin; r < end; ++r) {
      if (step.owner[r] != kFree || (s >= urgent_end && given >= budget)) continue;
      step.owner[r] = worker;
      --step.free;
      ++given;
      if (!leases.empty() && leases.back().step == s && leases.back().end == r) {
        ++leases.back().end;
      } else {
        leases.push_back({s, r, r + 1});
      }
      holder.frontier = std::max(holder.frontier, s + 1);
    }
  }
  holder.held += given;
  return leases;
}

std::map<uint64_t, uint64_t> LeaseTable::late_holders() const {
  std::map<uint64_t, uint64_t> holders;
  if (steps_.empty() || steps_.front().free > 0) return holders;
  for (uint64_t owner : steps_.front().owner) {
    if (owner != kDone) ++holders[owner];
  }
  return holders;
}

std::vector<LeaseTable::Lease> LeaseTable::TakeLate(uint64_t worker, uint64_t most) {
  std::vector<Lease> leases;
  if (steps_.empty()) return leases;
  std::vector<uint64_t>& owners = steps_.front().owner;
  uint64_t given = 0;
  for (uint32_t r = 0; r < width_ && given < most; ++r) {
    if (owners[r] == kFree || owners[r] == kDone || owners[r] == worker) continue;
    --holders_[owners[r]].held;
    owners[r] = worker;
    ++given;
    if (!leases.empty() && leases.back().end == r) {
      ++leases.back().end;
    } else {
      leases.push_back({base_, r, r + 1});
    }
  }
  Holder& holder = holders_[worker];
  holder.held += given;
  if (given > 0) holder.frontier = std::max(holder.frontier, base_ + 1);
  return leases;
}

void LeaseTable::MarkDone(uint64_t step, uint32_t begin, uint32_t end) {
  if (step < base_ || step >= end_) return;
  At(step);
  Finish(step, begin, end);
}

void LeaseTable::Finish(uint64_t step, uint32_t begin, uint32_t end) {
  if (step < base_ || step >= end_ || step - base_ >= steps_.size()) return;
  Step& row = steps_[step - base_];
  for (uint32_t r = begin; r < std::min(end, width_); ++r) {
    uint64_t& owner = row.owner[r];
    if (owner == kDone) continue;
    if (owner == kFree) {
      --row.free;
    } else {
      --holders_[owner].held;
    }
    owner = kDone;
    ++row.done;
  }
  while (!steps_.empty() && steps_.front().done == width_) {
    steps_.pop_front();
    ++base_;
  }
}

void LeaseTable::ReleaseAll() {
  while (!holders_.empty()) Release(holders_.begin()->first);
}

uint64_t LeaseTable::Release(uint64_t worker) {
  uint64_t freed = 0;
  for (Step& step : steps_) {
    for (uint64_t& owner : step.owner) {
      if (owner != worker) continue;
      owner = kFree;
      ++step.free;
      ++freed;
    }
  }
  holders_.erase(worker);
  return freed;
}

}  // namespace tandem
