#include "coordinator/lease_table.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {

bool operator==(const LeaseTable::Lease& a, const LeaseTable::Lease& b) {
  return std::tie(a.step, a.begin, a.end) == std::tie(b.step, b.begin, b.end);
}
void PrintTo(const LeaseTable::Lease& lease, std::ostream* out) {
  *out << "step " << lease.step << " [" << lease.begin << ", " << lease.end << ")";
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Lease = LeaseTable::Lease;

constexpr uint64_t kNoLimit = UINT64_MAX;

TEST(LeaseTable, LeasesInTheOrderOfSteps) {
  LeaseTable table(0, 3, 4);
  // 6 micro-batches of columns 0 to 3: all four of step 0, two of step 1.
  EXPECT_THAT(table.Take(1, 0, 4, 6, kNoLimit), ElementsAre(Lease{0, 0, 4}, Lease{1, 0, 2}));
  EXPECT_EQ(table.held(1), 6u);
  EXPECT_THAT(table.Take(2, 0, 4, 6, kNoLimit), ElementsAre(Lease{1, 2, 4}, Lease{2, 0, 4}));
  EXPECT_EQ(table.held(2), 6u);
  EXPECT_THAT(table.Take(1, 0, 4, 6, kNoLimit), IsEmpty());
}

TEST(LeaseTable, LeasesWithinColumnsAndStepLimit) {
  LeaseTable table(0, 100, 4);
  EXPECT_THAT(table.Take(1, 1, 3, 100, 2), ElementsAre(Lease{0, 1, 3}, Lease{1, 1, 3}));
  EXPECT_THAT(table.Take(2, 0, 4, 100, 1), ElementsAre(Lease{0, 0, 1}, Lease{0, 3, 4}));
  EXPECT_THAT(table.Take(3, 2, 2, 100, 100), IsEmpty());  // No columns: it stands by.
  EXPECT_EQ(table.free_below(1), 0u);
  EXPECT_EQ(table.free_below(2), 2u);
  EXPECT_EQ(table.free_below(3), 6u);
  EXPECT_EQ(table.free_below(kNoLimit), 2u + 98 * 4);
}

TEST(LeaseTable, TheBaseIsTheFirstStepNotWhollyDone) {
  LeaseTable table(5, 8, 2);
  table.Take(1, 0, 2, 6, kNoLimit);
  EXPECT_EQ(table.base(), 5u);
  table.Finish(6, 0, 2);  // Out of order.
  EXPECT_EQ(table.base(), 5u);
  table.Finish(5, 0, 1);
  EXPECT_EQ(table.base(), 5u);
  table.Finish(5, 1, 2);  // Now both 5 and 6 are done.
  EXPECT_EQ(table.base(), 7u);
  EXPECT_EQ(table.held(1), 2u);
  EXPECT_FALSE(table.done());
  table.Finish(7, 0, 2);
  EXPECT_TRUE(table.done());
  EXPECT_EQ(table.base(), 8u);
  EXPECT_EQ(table.held(1), 0u);
}

TEST(LeaseTable, FinishedIsFinishedWhoeverDidIt) {
  LeaseTable table(0, 1, 4);
  table.Take(1, 0, 4, 4, kNoLimit);
  table.Finish(0, 0, 2);
  table.Finish(0, 0, 2);  // Twice, of a worker that was thought lost.
  EXPECT_EQ(table.held(1), 2u);
  EXPECT_EQ(table.Release(1), 2u);
  table.Finish(0, 2, 3);  // Reported after its lease went back.
  EXPECT_THAT(table.Take(2, 0, 4, 4, kNoLimit), ElementsAre(Lease{0, 3, 4}));
}

TEST(LeaseTable, IgnoresReportsOfStepsItDoesNotHave) {
  LeaseTable table(3, 6, 2);
  table.Take(1, 0, 2, 2, kNoLimit);
  table.Finish(2, 0, 2);  // Before the first,
  table.Finish(6, 0, 2);  // after the last,
  table.Finish(5, 0, 2);  // never leased,
  table.Finish(UINT64_MAX, 0, 2);
  table.Finish(3, 2, 9);  // and no such micro-batches.
  EXPECT_EQ(table.base(), 3u);
  EXPECT_EQ(table.held(1), 2u);
  EXPECT_EQ(table.free_below(kNoLimit), 4u);
}

// Worker 1 leased step 0 and 1 and is lost. Worker 2 has leased up to step 1 itself, so it waits
// for what worker 1 held: it takes all of it, whatever it holds already.
TEST(LeaseTable, WhatHoldsAWorkerUpIsTakenBeyondTheBudget) {
  LeaseTable table(0, 10, 4);
  table.Take(1, 0, 2, 4, kNoLimit);
  table.Take(2, 2, 4, 4, kNoLimit);
  EXPECT_EQ(table.Release(1), 4u);
  EXPECT_EQ(table.held(1), 0u);
  EXPECT_THAT(table.Take(2, 0, 4, 0, kNoLimit), ElementsAre(Lease{0, 0, 2}, Lease{1, 0, 2}));
  EXPECT_EQ(table.held(2), 8u);
  EXPECT_THAT(table.Take(2, 0, 4, 0, kNoLimit), IsEmpty());
  // One that never leased anything is held up by nothing.
  EXPECT_THAT(table.Take(3, 0, 4, 0, kNoLimit), IsEmpty());
}

// Without columns there is no urgency either: a budget is a budget.
TEST(LeaseTable, TakesTheFirstFreeOnes) {
  LeaseTable table(0, 10, 2);
  EXPECT_THAT(table.TakeFirst(1, 3, kNoLimit), ElementsAre(Lease{0, 0, 2}, Lease{1, 0, 1}));
  EXPECT_THAT(table.TakeFirst(1, 0, kNoLimit), IsEmpty());
  EXPECT_THAT(table.TakeFirst(2, 5, 2), ElementsAre(Lease{1, 1, 2}));
  table.Release(1);
  EXPECT_THAT(table.TakeFirst(2, 1, kNoLimit), ElementsAre(Lease{0, 0, 1}));
}

// A model of the table: one entry for each micro-batch, 0 free, a worker, or done.
class RandomCourse {
 public:
  explicit RandomCourse(uint32_t seed)
      : random_(seed),
        first_(random_() % 5),
        end_(first_ + 1 + random_() % 12),
        width_(1 + random_() % 9),
        table_(first_, end_, width_) {}

  void Run() {
    for (int i = 0; i < 2000 && !table_.done(); ++i) {
      const uint64_t worker = 1 + random_() % 4;
      switch (random_() % 8) {
        case 0:
          ASSERT_NO_FATAL_FAILURE(Release(worker));
          break;
        case 1:
        case 2:
        case 3:
          ASSERT_NO_FATAL_FAILURE(Take(worker));
          break;
        default:
          FinishSomething();
      }
      ASSERT_NO_FATAL_FAILURE(Compare());
    }
    // Whatever happened, one worker can finish the rest.
    while (!table_.done()) {
      for (uint64_t worker = 1; worker <= 4; ++worker) ASSERT_NO_FATAL_FAILURE(Release(worker));
      const std::vector<Lease> leases = table_.Take(9, 0, width_, 3, kNoLimit);
      ASSERT_FALSE(leases.empty());
      for (const Lease& lease : leases) table_.Finish(lease.step, lease.begin, lease.end);
    }
    EXPECT_EQ(table_.base(), end_);
    EXPECT_EQ(table_.held(9), 0u);
  }

 private:
  static constexpr uint64_t kDone = 1000;

  uint64_t& At(uint64_t step, uint32_t r) { return owner_[{step, r}]; }

  void Take(uint64_t worker) {
    uint32_t begin = random_() % (width_ + 1), end = random_() % (width_ + 1);
    if (begin > end) std::swap(begin, end);
    const uint64_t budget = random_() % 20, limit = first_ + random_() % 15;
    uint64_t given = 0, beyond = 0;
    std::pair<uint64_t, uint32_t> last{0, 0};
    for (const Lease& lease : table_.Take(worker, begin, end, budget, limit)) {
      ASSERT_GE(lease.step, table_.base());
      ASSERT_LT(lease.step, std::min(limit, end_));
      ASSERT_LE(begin, lease.begin);
      ASSERT_LT(lease.begin, lease.end);
      ASSERT_LE(lease.end, end);
      ASSERT_GE(std::make_pair(lease.step, lease.begin), last);
      last = {lease.step, lease.end};
      for (uint32_t r = lease.begin; r < lease.end; ++r) {
        ASSERT_EQ(At(lease.step, r), 0u) << "leased twice";
        At(lease.step, r) = worker;
        ++given;
        beyond += lease.step >= frontier_[worker] ? 1 : 0;
      }
    }
    // All that holds it up is leased; of what does not, no more than the budget.
    for (uint64_t step = table_.base(); step < std::min({limit, end_, frontier_[worker]}); ++step) {
      for (uint32_t r = begin; r < end; ++r) ASSERT_NE(At(step, r), 0u);
    }
    ASSERT_LE(beyond, budget);
    if (given < budget) {  // Then nothing more was there.
      for (uint64_t step = table_.base(); step < std::min(limit, end_); ++step) {
        for (uint32_t r = begin; r < end; ++r) ASSERT_NE(At(step, r), 0u);
      }
    }
    if (given == 0) return;
    frontier_[worker] = std::max(frontier_[worker], last.first + 1);
    known_end_ = std::max(known_end_, last.first + 1);
  }

  void FinishSomething() {
    const uint64_t step = random_() % (end_ + 2);
    const uint32_t begin = random_() % width_, end = begin + 1 + random_() % 3;
    table_.Finish(step, begin, end);
    for (uint32_t r = begin; r < std::min(end, width_); ++r) {
      if (step >= first_ && step < known_end_) At(step, r) = kDone;
    }
  }

  void Release(uint64_t worker) {
    uint64_t held = 0;
    for (auto& [name, owner] : owner_) {
      if (owner != worker) continue;
      owner = 0;
      ++held;
    }
    ASSERT_EQ(table_.Release(worker), held);
    frontier_.erase(worker);
  }

  void Compare() {
    std::map<uint64_t, uint64_t> held;
    for (const auto& [name, owner] : owner_) ++held[owner];
    for (uint64_t worker = 1; worker <= 4; ++worker) {
      ASSERT_EQ(table_.held(worker), held[worker]);
    }
    uint64_t base = first_;
    const auto whole = [&](uint64_t step) {
      for (uint32_t r = 0; r < width_; ++r) {
        if (At(step, r) != kDone) return false;
      }
      return true;
    };
    while (base < end_ && whole(base)) ++base;
    ASSERT_EQ(table_.base(), base);
    const uint64_t limit = random_() % (end_ + 3);
    uint64_t free = 0;
    for (uint64_t step = base; step < std::min(limit, end_); ++step) {
      for (uint32_t r = 0; r < width_; ++r) free += At(step, r) == 0 ? 1 : 0;
    }
    ASSERT_EQ(table_.free_below(limit), free);
  }

  std::mt19937 random_;
  const uint64_t first_, end_;
  const uint32_t width_;
  LeaseTable table_;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> owner_;
  std::map<uint64_t, uint64_t> frontier_;
  uint64_t known_end_ = 0;  // Past the last step ever leased: reports of later ones are ignored.
};

TEST(LeaseTable, AgreesWithAPlainModel) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(RandomCourse(seed).Run());
  }
}

}  // namespace
}  // namespace tandem
