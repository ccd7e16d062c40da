#include "common/optim/learning_rate.h"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

v1::LearningRateSchedule Decay(uint64_t steps, float end) {
  v1::LearningRateSchedule schedule;
  schedule.mutable_polynomial_decay()->set_decay_steps(steps);
  schedule.mutable_polynomial_decay()->set_end_learning_rate(end);
  return schedule;
}

TEST(LearningRate, IsConstantWithoutASchedule) {
  const auto rate = LearningRate::Create(0.25f, {}, 4);
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(rate->At(1), 0.25f);
  EXPECT_EQ(rate->At(std::numeric_limits<uint64_t>::max()), 0.25f);
}

// Update u is Keras's iteration u - 1.
TEST(LearningRate, IsKerasToTheBit) {
  std::ifstream file("tests/golden/schedules.json");
  ASSERT_TRUE(file) << "tests/golden/schedules.json cannot be read";
  int compared = 0;
  for (const auto& golden : nlohmann::json::parse(file)) {
    const auto rate = LearningRate::Create(
        golden["learning_rate"], Decay(golden["decay_steps"], golden["end_learning_rate"]), 1);
    ASSERT_TRUE(rate.ok());
    for (size_t i = 0; i < golden["steps"].size(); ++i) {
      const uint64_t step = golden["steps"][i];
      EXPECT_EQ(rate->At(step + 1), golden["rates"][i].get<float>())
          << golden["learning_rate"] << " at step " << step;
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
}

// Four micro-batches that are updates of their own make one step.
TEST(LearningRate, CountsStepsAndNotUpdates) {
  const auto step_by_step = LearningRate::Create(1, Decay(10, 0), 1);
  const auto by_quarters = LearningRate::Create(1, Decay(10, 0), 4);
  for (uint64_t update = 1; update <= 60; ++update) {
    EXPECT_EQ(by_quarters->At(update), step_by_step->At((update - 1) / 4 + 1));
  }
  EXPECT_EQ(by_quarters->At(4), 1.0f);
  EXPECT_LT(by_quarters->At(5), 1.0f);
}

TEST(LearningRate, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(
      LearningRate::Create(1, Decay(0, 0), 1).status().message(),
      "optimizer.learning_rate_schedule.polynomial_decay.decay_steps: is 0; expected at least "
      "1");
  for (float end : {-1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(std::string(LearningRate::Create(1, Decay(5, end), 1).status().message()),
                testing::HasSubstr("end_learning_rate: is "));
  }
}

}  // namespace
}  // namespace tandem
