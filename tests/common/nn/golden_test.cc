// Losses, gradients and metrics against those of Keras: tests/golden/make_nn.py.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "common/nn/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/nn/jobs.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

// Of the largest element: sums of a dozen floats in another order.
constexpr double kTolerance = 2e-6;

std::vector<float> Floats(const Json& numbers) {
  std::vector<float> values;
  for (const Json& number : numbers) values.push_back(number.get<float>());
  return values;
}

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (float v : values) largest = std::max<double>(largest, std::abs(v));
  return largest;
}

std::vector<Json> Cases() {
  std::ifstream file("tests/golden/nn.json");
  return Json::parse(file).get<std::vector<Json>>();
}

class GoldenTest : public testing::TestWithParam<Json> {};

TEST_P(GoldenTest, AgreesWithKeras) {
  const Json& golden = GetParam();
  const v1::JobSpec job = JobOf(golden["job"]);
  const auto model = ModelOf(job, golden["shape"].get<std::vector<uint64_t>>());
  const Batch batch = {golden["batch"], Floats(golden["features"]), Floats(golden["labels"])};
  const std::vector<float> weights = Floats(golden["weights"]);
  ASSERT_EQ(weights.size(), model->num_elements());
  const auto replica = Replica::Create(model.get());
  std::vector<float> gradient(weights.size(), 77);
  v1::Sums sums;
  ASSERT_TRUE(replica->ComputeGradient(batch, weights.data(), 1, gradient.data(), &sums).ok());

  const double loss = golden["loss"];
  EXPECT_NEAR(sums.loss(), loss, kTolerance * std::max(1.0, std::abs(loss)));
  EXPECT_EQ(sums.examples(), batch.size);
  const std::vector<std::string> names = MetricNames(job);
  ASSERT_EQ(sums.metrics_size(), static_cast<int>(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    const double want = golden[names[i]];
    EXPECT_NEAR(sums.metrics(static_cast<int>(i)), want, kTolerance * std::max(1.0, want))
        << names[i];
  }
  const std::vector<float> want = Floats(golden["gradient"]);
  const double tolerance = kTolerance * std::max(1.0, Largest(want));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(gradient[i], want[i], tolerance) << i;

  v1::Sums evaluated;
  ASSERT_TRUE(replica->Evaluate(batch, weights.data(), &evaluated).ok());
  EXPECT_EQ(evaluated.SerializeAsString(), sums.SerializeAsString());
}

INSTANTIATE_TEST_SUITE_P(Keras, GoldenTest, testing::ValuesIn(Cases()), [](const auto& info) {
  return info.param["name"].template get<std::string>();
});

}  // namespace
}  // namespace tandem
