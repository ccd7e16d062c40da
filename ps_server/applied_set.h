// Which updates a shard has applied: numbers, kept as disjoint intervals. Updates come nearly in
// order, so a few intervals stand for millions of updates.
#ifndef TANDEM_PS_SERVER_APPLIED_SET_H_
#define TANDEM_PS_SERVER_APPLIED_SET_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace tandem {

// Not thread-safe.
class AppliedSet {
 public:
  // False when `number` is in the set already. O(log intervals).
  bool Insert(uint64_t number) {
    auto next = intervals_.upper_bound(number);
    const bool joins_next = next != intervals_.end() && next->first == number + 1;
    if (next != intervals_.begin()) {
      auto previous = std::prev(next);
      if (number < previous->second) return false;
      if (number == previous->second) {
        previous->second = joins_next ? next->second : number + 1;
        if (joins_next) intervals_.erase(next);
        ++size_;
        return true;
      }
    }
    const uint64_t end = joins_next ? next->second : number + 1;
    if (joins_next) intervals_.erase(next);
    intervals_.emplace(number, end);
    ++size_;
    return true;
  }

  // Adds [begin, end), which must lie after everything that is in the set; false when it does not.
  bool Append(uint64_t begin, uint64_t end) {
    if (begin >= end || (!intervals_.empty() && begin < intervals_.rbegin()->second)) return false;
    if (!intervals_.empty() && begin == intervals_.rbegin()->second) {
      intervals_.rbegin()->second = end;
    } else {
      intervals_.emplace_hint(intervals_.end(), begin, end);
    }
    size_ += end - begin;
    return true;
  }

  bool Contains(uint64_t number) const {
    auto next = intervals_.upper_bound(number);
    return next != intervals_.begin() && number < std::prev(next)->second;
  }

  uint64_t size() const { return size_; }
  // begin -> end (half-open), sorted, disjoint, not touching.
  const std::map<uint64_t, uint64_t>& intervals() const { return intervals_; }

 private:
  std::map<uint64_t, uint64_t> intervals_;
  uint64_t size_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_APPLIED_SET_H_
