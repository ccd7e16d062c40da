#include "common/data/batch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace tandem {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> Order(uint64_t n, uint64_t seed, uint64_t epoch) {
  const Permutation permutation(n, seed, epoch);
  std::vector<uint64_t> order(n);
  for (uint64_t i = 0; i < n; ++i) order[i] = permutation(i);
  return order;
}

std::vector<uint64_t> Sorted(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<uint64_t> Iota(uint64_t n) {
  std::vector<uint64_t> values(n);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

v1::Training Training(uint32_t batch, uint32_t replicas) {
  v1::Training training;
  training.set_global_batch_size(batch);
  training.set_replicas(replicas);
  training.set_epochs(2);
  return training;
}

TEST(PermutationTest, IsABijectionOfEverySmallSize) {
  for (uint64_t n = 1; n <= 300; ++n) ASSERT_EQ(Sorted(Order(n, n, 3)), Iota(n)) << n;
}

TEST(PermutationTest, IsABijectionOfLargeSizes) {
  for (const uint64_t n : {60000, 65535, 65536, 65537, 1000003}) {
    ASSERT_EQ(Sorted(Order(n, 7, 0)), Iota(n)) << n;
  }
}

TEST(PermutationTest, StaysBelowSizesThatNoTableCouldHold) {
  for (const int bits : {33, 40, 47, 62, 63}) {
    const uint64_t n = (uint64_t{1} << bits) + 1;
    const Permutation permutation(n, 1, 2);
    std::vector<uint64_t> images;
    for (uint64_t i = 0; i < 1000; ++i) images.push_back(permutation(n - 1 - i));
    images = Sorted(images);
    EXPECT_LT(images.back(), n);
    EXPECT_EQ(std::adjacent_find(images.begin(), images.end()), images.end());
  }
}

TEST(PermutationTest, DiffersBySeedAndEpoch) {
  EXPECT_EQ(Order(1000, 1, 1), Order(1000, 1, 1));
  EXPECT_NE(Order(1000, 1, 1), Order(1000, 1, 2));
  EXPECT_NE(Order(1000, 1, 1), Order(1000, 2, 1));
  EXPECT_NE(Order(1000, 1, 2), Order(1000, 2, 1));
}

// The order is part of what makes a job repeat its bits: it must never change.
TEST(PermutationTest, KeepsItsGoldenOrder) {
  EXPECT_THAT(Order(10, 0, 0), ElementsAre(8, 5, 4, 1, 7, 3, 0, 9, 2, 6));
  EXPECT_THAT(Order(10, 42, 7), ElementsAre(7, 6, 5, 9, 0, 8, 3, 1, 2, 4));
  EXPECT_EQ(Permutation(60000, 1, 0)(0), 39008);
  EXPECT_EQ(Permutation(60000, 1, 0)(59999), 58064);
  EXPECT_EQ(Permutation(uint64_t{1} << 40, 1, 0)(12345), 431734431649);
}

// Over many epochs each of the n! orders of few examples is about as frequent as another.
TEST(PermutationTest, GivesEveryOrderOfFewExamplesAlike) {
  for (const auto& [n, orders] : std::map<uint64_t, int>{{2, 2}, {3, 6}, {4, 24}, {5, 120}}) {
    constexpr int kPerOrder = 400;
    std::map<std::vector<uint64_t>, int> seen;
    for (int epoch = 0; epoch < orders * kPerOrder; ++epoch) ++seen[Order(n, 5, epoch)];
    ASSERT_EQ(seen.size(), static_cast<size_t>(orders)) << n;
    // The count of one order has a standard deviation of at most 20: six of them each way.
    for (const auto& [order, count] : seen) {
      EXPECT_NEAR(count, kPerOrder, 120) << n << ": " << testing::PrintToString(order);
    }
  }
}

// Chi-square with 99 degrees of freedom: mean 99, standard deviation 14.
TEST(PermutationTest, SendsEveryPlaceToEveryPlaceAlike) {
  constexpr uint64_t kSize = 100;
  constexpr int kEpochs = 20000;
  std::vector<std::array<int, kSize>> counts(kSize);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation permutation(kSize, 9, epoch);
    for (uint64_t i = 0; i < kSize; ++i) ++counts[i][permutation(i)];
  }
  constexpr double kExpected = kEpochs / static_cast<double>(kSize);
  for (uint64_t i = 0; i < kSize; ++i) {
    double chi_square = 0;
    for (const int count : counts[i]) {
      chi_square += (count - kExpected) * (count - kExpected) / kExpected;
    }
    EXPECT_GT(chi_square, 99 - 6 * 14) << i;
    EXPECT_LT(chi_square, 99 + 6 * 14) << i;
  }
}

TEST(BatchPlanTest, CutsABatchAsInTheWorkedExample) {
  // 10 examples in batches of 4 are 4 + 4 + 2; a batch of 4 over 3 replicas is 2 + 1 + 1, one of 2
  // is 1 + 1 + 0.
  const BatchPlan plan(Training(4, 3), /*shuffle=*/false, /*seed=*/0, /*examples=*/10);
  EXPECT_EQ(plan.steps_per_epoch(), 3);
  EXPECT_EQ(plan.BatchExamples(1), 4);
  EXPECT_EQ(plan.BatchExamples(2), 2);
  std::vector<uint64_t> indices;
  plan.MicroBatch(1, 0, &indices);
  EXPECT_THAT(indices, ElementsAre(4, 5));
  plan.MicroBatch(1, 2, &indices);
  EXPECT_THAT(indices, ElementsAre(7));
  plan.MicroBatch(2, 1, &indices);
  EXPECT_THAT(indices, ElementsAre(9));
  plan.MicroBatch(2, 2, &indices);
  EXPECT_THAT(indices, ElementsAre());
  plan.MicroBatch(3, 0, &indices);  // The next epoch begins anew.
  EXPECT_THAT(indices, ElementsAre(0, 1));
  EXPECT_EQ(plan.epoch(2), 0);
  EXPECT_EQ(plan.epoch(3), 1);
}

// Checks sizes and order of the micro-batches of `epoch`, and that they hold every example once.
void CheckEpoch(const BatchPlan& plan, uint64_t examples, uint32_t batch, uint64_t epoch) {
  std::vector<uint64_t> all, indices;
  for (uint64_t step = epoch * plan.steps_per_epoch(); plan.epoch(step) == epoch; ++step) {
    uint64_t in_step = 0, previous = batch;
    const uint64_t first = plan.MicroBatchExamples(step, 0);
    for (uint32_t r = 0; r < plan.replicas(); ++r) {
      plan.MicroBatch(step, r, &indices);
      ASSERT_EQ(indices.size(), plan.MicroBatchExamples(step, r));
      ASSERT_LE(indices.size(), previous);
      ASSERT_GE(indices.size() + 1, first);
      previous = indices.size();
      in_step += indices.size();
      all.insert(all.end(), indices.begin(), indices.end());
    }
    ASSERT_EQ(in_step, plan.BatchExamples(step));
    ASSERT_EQ(in_step, std::min<uint64_t>(batch, examples - (all.size() - in_step)));
  }
  ASSERT_EQ(Sorted(all), Iota(examples));
}

TEST(BatchPlanTest, CoversEveryExampleOnceAnEpoch) {
  for (const uint64_t examples : {1, 2, 7, 64, 65, 257, 1000}) {
    for (const uint32_t batch : {1, 2, 3, 8, 64, 100, 2000}) {
      for (const uint32_t replicas : {1, 2, 3, 4, 7, 64, 130}) {
        for (const bool shuffle : {false, true}) {
          SCOPED_TRACE(testing::Message() << examples << " " << batch << " " << replicas);
          const BatchPlan plan(Training(batch, replicas), shuffle, /*seed=*/3, examples);
          ASSERT_NO_FATAL_FAILURE(CheckEpoch(plan, examples, batch, 0));
          ASSERT_NO_FATAL_FAILURE(CheckEpoch(plan, examples, batch, 5));
        }
      }
    }
  }
}

TEST(BatchPlanTest, ShufflesByPermutationOfSeedAndEpoch) {
  const BatchPlan plan(Training(10, 1), /*shuffle=*/true, /*seed=*/11, /*examples=*/95);
  std::vector<uint64_t> indices;
  plan.MicroBatch(13, 0, &indices);  // Epoch 1, places 30 to 39.
  const std::vector<uint64_t> order = Order(95, 11, 1);
  EXPECT_EQ(indices, std::vector<uint64_t>(order.begin() + 30, order.begin() + 40));
}

TEST(BatchPlanTest, TheExamplesOfABatchDoNotDependOnReplicas) {
  const BatchPlan one(Training(64, 1), true, 1, 1000), five(Training(64, 5), true, 1, 1000);
  std::vector<uint64_t> whole, joined, part;
  one.MicroBatch(20, 0, &whole);
  for (uint32_t r = 0; r < 5; ++r) {
    five.MicroBatch(20, r, &part);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(whole, joined);
}

TEST(BatchPlanTest, LengthIsEpochsOrSteps) {
  v1::Training training = Training(64, 4);
  training.set_epochs(3);
  EXPECT_EQ(BatchPlan(training, true, 0, 60000).total_steps(), 3 * 938);
  training.set_steps(17);
  EXPECT_EQ(BatchPlan(training, true, 0, 60000).total_steps(), 17);
}

}  // namespace
}  // namespace tandem
