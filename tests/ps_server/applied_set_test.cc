#include "ps_server/applied_set.h"

#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(AppliedSet, JoinsNeighbours) {
  AppliedSet set;
  EXPECT_TRUE(set.Insert(5));
  EXPECT_TRUE(set.Insert(7));
  EXPECT_THAT(set.intervals(), ElementsAre(Pair(5, 6), Pair(7, 8)));
  EXPECT_TRUE(set.Insert(6));  // Closes the gap.
  EXPECT_THAT(set.intervals(), ElementsAre(Pair(5, 8)));
  EXPECT_TRUE(set.Insert(8));  // Behind the end,
  EXPECT_TRUE(set.Insert(4));  // before the begin,
  EXPECT_TRUE(set.Insert(0));  // and apart.
  EXPECT_THAT(set.intervals(), ElementsAre(Pair(0, 1), Pair(4, 9)));
  EXPECT_EQ(set.size(), 6u);
}

TEST(AppliedSet, InsertsOnce) {
  AppliedSet set;
  for (uint64_t n : {1, 2, 3}) EXPECT_TRUE(set.Insert(n));
  for (uint64_t n : {1, 2, 3}) EXPECT_FALSE(set.Insert(n));
  EXPECT_EQ(set.size(), 3u);
  EXPECT_FALSE(set.Contains(0));
  EXPECT_TRUE(set.Contains(3));
  EXPECT_FALSE(set.Contains(4));
}

TEST(AppliedSet, StaysSmallWhenUpdatesComeNearlyInOrder) {
  AppliedSet set;
  for (uint64_t n = 0; n < 100000; n += 2) {  // 1, 0, 3, 2, ...
    set.Insert(n + 1);
    EXPECT_LE(set.intervals().size(), 2u);
    set.Insert(n);
  }
  EXPECT_THAT(set.intervals(), ElementsAre(Pair(0, 100000)));
}

// std::set is the oracle; its runs are the intervals.
std::map<uint64_t, uint64_t> Runs(const std::set<uint64_t>& numbers) {
  std::map<uint64_t, uint64_t> runs;
  for (uint64_t n : numbers) {
    if (!runs.empty() && runs.rbegin()->second == n) {
      ++runs.rbegin()->second;
    } else {
      runs[n] = n + 1;
    }
  }
  return runs;
}

TEST(AppliedSet, AgreesWithStdSet) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const uint64_t range = 1 + random() % 200;
    AppliedSet set;
    std::set<uint64_t> oracle;
    for (int i = 0; i < 300; ++i) {
      const uint64_t n = random() % range;
      ASSERT_EQ(set.Insert(n), oracle.insert(n).second);
      ASSERT_EQ(set.size(), oracle.size());
      ASSERT_EQ(set.intervals(), Runs(oracle));
      const uint64_t asked = random() % (range + 2);
      ASSERT_EQ(set.Contains(asked), oracle.count(asked) > 0);
    }
  }
}

}  // namespace
}  // namespace tandem
