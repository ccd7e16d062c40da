#include "coordinator/partition.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Sizes(uint32_t replicas, const std::vector<double>& speeds) {
  std::vector<uint32_t> sizes;
  uint32_t at = 0;
  for (const ReplicaRange& range : SplitReplicas(replicas, speeds)) {
    EXPECT_EQ(range.begin, at);  // Contiguous, in the order of the workers.
    EXPECT_LE(range.begin, range.end);
    at = range.end;
    sizes.push_back(range.size());
  }
  EXPECT_EQ(at, replicas);
  return sizes;
}

TEST(SplitReplicas, EqualWorkersGetEqualParts) {
  EXPECT_THAT(Sizes(8, {1, 1}), ElementsAre(4, 4));
  EXPECT_THAT(Sizes(8, {0.5, 0.5, 0.5, 0.5}), ElementsAre(2, 2, 2, 2));
  // 8 / 3 = 2.67 each: 2 each, and the 2 that are left go to the first two.
  EXPECT_THAT(Sizes(8, {1, 1, 1}), ElementsAre(3, 3, 2));
}

TEST(SplitReplicas, FasterWorkersGetMore) {
  EXPECT_THAT(Sizes(8, {3, 1}), ElementsAre(6, 2));
  // Shares of 10: 1.43, 2.86, 5.71. Whole parts 1 + 2 + 5 = 8; the 2 left go to .86 and .71.
  EXPECT_THAT(Sizes(10, {1, 2, 4}), ElementsAre(1, 3, 6));
}

TEST(SplitReplicas, MoreWorkersThanReplicasLeavesSomeStandingBy) {
  EXPECT_THAT(Sizes(2, {1, 1, 1, 1}), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(Sizes(1, {1, 5, 1}), ElementsAre(0, 1, 0));
}

TEST(SplitReplicas, OneWorkerGetsAll) { EXPECT_THAT(Sizes(7, {0.001}), ElementsAre(7)); }

TEST(SplitReplicas, WithoutWorkersThereIsNothingToSplit) {
  EXPECT_TRUE(SplitReplicas(4, {}).empty());
}

TEST(SplitReplicas, IsWithinOneOfProportional) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t replicas = 1 + random() % 300;
    std::vector<double> speeds(1 + random() % 20);
    for (double& speed : speeds) speed = std::exp2(static_cast<double>(random() % 40) - 20);
    const double total = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    const std::vector<uint32_t> sizes = Sizes(replicas, speeds);
    for (size_t w = 0; w < sizes.size(); ++w) {
      EXPECT_LE(std::abs(sizes[w] - replicas * speeds[w] / total), 1.0);
    }
  }
}

}  // namespace
}  // namespace tandem
