// What a replica promises beside the right numbers: the same bits, no memory taken again, and
// errors that say what is not finite. Run once for each instruction set; a processor that lacks it
// skips the tests.
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/nn/model.h"
#include "common/tensor/cpu_isa.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/nn/jobs.h"

namespace tandem {
namespace {

constexpr char kMlp[] = R"pb(
  model {
    layers { flatten {} }
    layers { dense { units: 33 activation: "gelu" } }
    layers { dense { units: 10 activation: "softmax" } }
  }
  loss { sparse_categorical_crossentropy {} }
  metrics { accuracy {} }
)pb";

struct Result {
  std::vector<float> gradient;
  std::string sums;
  bool operator==(const Result&) const = default;
};

class ReplicaTest : public testing::Test {
 protected:
  Result Compute(Replica* replica, const Batch& batch) const {
    Result result;
    result.gradient.resize(weights_.size(), 99);
    v1::Sums sums;
    EXPECT_TRUE(
        replica->ComputeGradient(batch, weights_.data(), 0.125f, result.gradient.data(), &sums)
            .ok());
    result.sums = sums.SerializeAsString();
    return result;
  }
  Batch BatchOf(size_t size) const { return RandomBatch(size, 180, 10, size); }

  const std::unique_ptr<const Model> model_ = ModelOf(JobOf(kMlp), {12, 15});
  const std::vector<float> weights_ = InitialWeights(*model_, 5);
};

TEST_F(ReplicaTest, SameBitsWhateverWasComputedBefore) {
  std::vector<Result> want;
  const size_t sizes[] = {64, 1, 7, 65, 32};
  for (size_t size : sizes) {
    want.push_back(Compute(Replica::Create(model_.get()).get(), BatchOf(size)));
  }
  const auto replica = Replica::Create(model_.get());
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < std::size(sizes); ++i) {
      EXPECT_EQ(Compute(replica.get(), BatchOf(sizes[i])), want[i]);
      v1::Sums sums;
      ASSERT_TRUE(replica->Evaluate(BatchOf(100), weights_.data(), &sums).ok());
    }
  }
}

TEST_F(ReplicaTest, SameBitsFromEveryThread) {
  const Result want = Compute(Replica::Create(model_.get()).get(), BatchOf(48));
  Result results[4];
  std::vector<std::thread> threads;
  for (Result& result : results) {
    threads.emplace_back([&] {
      const auto replica = Replica::Create(model_.get());
      for (int i = 0; i < 5; ++i) result = Compute(replica.get(), BatchOf(48));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, testing::Each(want));
}

TEST_F(ReplicaTest, ScaleIsAFactorOfTheGradientAlone) {
  const auto replica = Replica::Create(model_.get());
  const Batch batch = BatchOf(9);
  std::vector<float> once(weights_.size()), twice(weights_.size());
  v1::Sums sums, again;
  ASSERT_TRUE(replica->ComputeGradient(batch, weights_.data(), 1, once.data(), &sums).ok());
  ASSERT_TRUE(replica->ComputeGradient(batch, weights_.data(), 2, twice.data(), &again).ok());
  for (float& g : once) g *= 2;
  EXPECT_EQ(once, twice);
  EXPECT_EQ(sums.SerializeAsString(), again.SerializeAsString());
}

TEST_F(ReplicaTest, NotFiniteLossIsNamed) {
  const auto replica = Replica::Create(model_.get());
  std::vector<float> weights = weights_, gradient(weights_.size());
  v1::Sums sums;
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), 1e38f}) {
    weights[weights.size() - 15] = bad;
    Batch batch = BatchOf(4);
    for (float& x : batch.features) x *= 1e5f;
    const absl::Status status =
        replica->ComputeGradient(batch, weights.data(), 1, gradient.data(), &sums);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(status.message()),
        testing::MatchesRegex("the loss or a metric of [1-4] of its examples is not finite"));
    ASSERT_TRUE(replica->Evaluate(batch, weights.data(), &sums).ok());
    EXPECT_GT(sums.skipped(), 0);
    EXPECT_EQ(sums.examples() + sums.skipped(), 4);
    EXPECT_TRUE(std::isfinite(sums.loss()));
  }
  // And nothing of it is left.
  EXPECT_EQ(Compute(replica.get(), BatchOf(4)),
            Compute(Replica::Create(model_.get()).get(), BatchOf(4)));
}

TEST_F(ReplicaTest, EvaluationLeavesOutTheExampleThatIsNotFinite) {
  const auto replica = Replica::Create(model_.get());
  Batch batch = BatchOf(3);
  v1::Sums whole, rest;
  const size_t size = batch.features.size() / 3;
  std::fill_n(batch.features.begin() + static_cast<ptrdiff_t>(size), size,
              std::numeric_limits<float>::infinity());
  ASSERT_TRUE(replica->Evaluate(batch, weights_.data(), &whole).ok());
  EXPECT_EQ(whole.examples(), 2);
  EXPECT_EQ(whole.skipped(), 1);
  batch.features.erase(batch.features.begin() + static_cast<ptrdiff_t>(size),
                       batch.features.begin() + static_cast<ptrdiff_t>(2 * size));
  batch.labels.erase(batch.labels.begin() + 1);
  batch.size = 2;
  ASSERT_TRUE(replica->Evaluate(batch, weights_.data(), &rest).ok());
  EXPECT_EQ(whole.loss(), rest.loss());
  EXPECT_EQ(whole.metrics(0), rest.metrics(0));
}

TEST_F(ReplicaTest, NotFiniteGradientNamesItsVariable) {
  const auto replica = Replica::Create(model_.get());
  std::vector<float> gradient(weights_.size());
  v1::Sums sums;
  const absl::Status status = replica->ComputeGradient(
      BatchOf(4), weights_.data(), std::numeric_limits<float>::infinity(), gradient.data(), &sums);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex("the gradient of dense(_1)?/(kernel|bias) is not finite"));
}

TEST_F(ReplicaTest, ALabelThatIsNoClassIsRefused) {
  const auto replica = Replica::Create(model_.get());
  std::vector<float> gradient(weights_.size());
  v1::Sums sums;
  for (float bad : {10.0f, -1.0f, 2.5f, std::numeric_limits<float>::quiet_NaN()}) {
    Batch batch = BatchOf(3);
    batch.labels[1] = bad;
    const absl::Status status =
        replica->ComputeGradient(batch, weights_.data(), 1, gradient.data(), &sums);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("of example 1"));
  }
  Batch torn = BatchOf(3);
  torn.features.pop_back();
  EXPECT_EQ(replica->Evaluate(torn, weights_.data(), &sums).code(),
            absl::StatusCode::kInvalidArgument);
}

// Accuracy of equal scores: the lowest class number wins.
TEST(Accuracy, TiesGoToTheLowestClass) {
  const auto model = ModelOf(JobOf(kMlp), {2});
  const std::vector<float> weights(model->num_elements(), 0);
  const Batch batch = {2, {1, 2, 3, 4}, {0, 1}};
  v1::Sums sums;
  ASSERT_TRUE(Replica::Create(model.get())->Evaluate(batch, weights.data(), &sums).ok());
  EXPECT_EQ(sums.metrics(0), 1);
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const absl::Status status = tandem::FixCpuIsa(argc > 1 ? argv[1] : "avx2");
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    std::printf("skipped: %s\n", status.ToString().c_str());
    return 0;
  }
  return RUN_ALL_TESTS();
}
