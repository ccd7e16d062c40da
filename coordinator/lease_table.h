// Who computes what: the micro-batches of a window of steps, each free, leased to a worker, or
// done. Evaluation uses it too, as one step of many chunks.
#ifndef TANDEM_COORDINATOR_LEASE_TABLE_H_
#define TANDEM_COORDINATOR_LEASE_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace tandem {

// Not thread-safe. Its memory grows with the window between the first step that is not done and the
// last one leased, which callers bound through `step_limit`.
class LeaseTable {
 public:
  // Micro-batches [begin, end) of `step`.
  struct Lease {
    uint64_t step;
    uint32_t begin, end;
  };

  // Steps [first, end), each of `width` micro-batches.
  LeaseTable(uint64_t first, uint64_t end, uint32_t width);

  // The first step that is not wholly done; `end` when all are.
  uint64_t base() const { return base_; }
  bool done() const { return base_ == end_; }
  // Micro-batches that `worker` has leased and not finished.
  uint64_t held(uint64_t worker) const;
  // Free micro-batches of the steps below `step_limit`.
  uint64_t free_below(uint64_t step_limit) const;

  // Leases to `worker` free micro-batches of columns [begin, end), in the order of steps below
  // `step_limit`: all of those in steps below its frontier (the last step it was ever leased, plus
  // one), for they hold others up; then, while fewer than `budget` are given, those of further
  // steps.
  std::vector<Lease> Take(uint64_t worker, uint32_t begin, uint32_t end, uint64_t budget,
                          uint64_t step_limit);

  // Leases to `worker` the first `most` free micro-batches of the steps below `step_limit`.
  std::vector<Lease> TakeFirst(uint64_t worker, uint64_t most, uint64_t step_limit);

  // Leases to `worker` up to `most` micro-batches of step base() that others hold: those are theirs
  // no more, but may still finish them.
  std::vector<Lease> TakeLate(uint64_t worker, uint64_t most);
  // Who holds how many micro-batches of step base(). Empty while some are free: they come first.
  std::map<uint64_t, uint64_t> late_holders() const;

  // Marks [begin, end) of `step` done, whoever did it. Done already, out of range, or of a step
  // past the last one leased: no effect.
  void Finish(uint64_t step, uint32_t begin, uint32_t end);
  // The same, of any step: for a table that is made from what others know.
  void MarkDone(uint64_t step, uint32_t begin, uint32_t end);

  // Frees what `worker` holds; how many micro-batches that were.
  uint64_t Release(uint64_t worker);
  // Frees what anybody holds.
  void ReleaseAll();

 private:
  static constexpr uint64_t kFree = 0, kDone = UINT64_MAX;  // Workers are numbered from 1.

  struct Step {
    std::vector<uint64_t> owner;  // By micro-batch.
    uint32_t free, done;
  };
  struct Holder {
    uint64_t held = 0;
    uint64_t frontier = 0;
  };

  Step& At(uint64_t step);
  // Take, where `urgent_end` is the frontier.
  std::vector<Lease> TakeUrgent(uint64_t worker, uint32_t begin, uint32_t end, uint64_t budget,
                                uint64_t step_limit, uint64_t urgent_end);

  uint64_t base_, end_;
  uint32_t width_;
  std::deque<Step> steps_;  // From base_.
  std::map<uint64_t, Holder> holders_;
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_LEASE_TABLE_H_
