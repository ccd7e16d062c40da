#include "common/tensor/activation.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/tensor/ulp.h"

namespace tandem {
namespace {

constexpr uint32_t kStride = 4001;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double Cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double Density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;

struct Case {
  Activation activation;
  const char* name;
  double bound;             // In ulp.
  double derivative_bound;  // Absolute.
  double (*f)(double);
  double (*d)(double);
};

const Case kCases[] = {
    {Activation::kLinear, "linear", 0, 0, [](double x) { return x; }, [](double) { return 1.0; }},
    {Activation::kRelu, "relu", 0, 0, [](double x) { return std::max(x, 0.0); },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {Activation::kSigmoid, "sigmoid", 2.5, 1e-7, Sigmoid,
     [](double x) { return Sigmoid(x) * Sigmoid(-x); }},
    {Activation::kTanh, "tanh", 2.5, 4e-7, [](double x) { return std::tanh(x); },
     [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
    {Activation::kElu, "elu", 2, 2e-7, [](double x) { return x < 0 ? std::expm1(x) : x; },
     [](double x) { return x < 0 ? std::exp(x) : 1.0; }},
    {Activation::kSelu, "selu", 3, 4e-7,
     [](double x) { return kScale * (x < 0 ? kAlpha * std::expm1(x) : x); },
     [](double x) { return kScale * (x < 0 ? kAlpha * std::exp(x) : 1.0); }},
    {Activation::kSoftplus, "softplus", 2.5, 2e-7,
     [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, Sigmoid},
    {Activation::kSoftsign, "softsign", 1.5, 2e-7, [](double x) { return x / (1 + std::abs(x)); },
     [](double x) { return 1 / ((1 + std::abs(x)) * (1 + std::abs(x))); }},
    {Activation::kSilu, "silu", 4, 4e-7, [](double x) { return x * Sigmoid(x); },
     [](double x) { return Sigmoid(x) * (1 + x * Sigmoid(-x)); }},
    {Activation::kGelu, "gelu", 7, 4e-7, [](double x) { return x * Cdf(x); },
     [](double x) { return Cdf(x) + x * Density(x); }},
    {Activation::kLeakyRelu, "leaky_relu", 1, 1e-7, [](double x) { return x < 0 ? 0.2 * x : x; },
     [](double x) { return x > 0 ? 1.0 : 0.2; }},
    {Activation::kExponential, "exponential", 1.1, 0, [](double x) { return std::exp(x); },
     nullptr},
    {Activation::kHardSigmoid, "hard_sigmoid", 0, 1e-7,
     [](double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; },
     [](double x) { return x > -3 && x < 3 ? 1 / 6.0 : 0.0; }},
    {Activation::kRelu6, "relu6", 0, 0, [](double x) { return std::min(std::max(x, 0.0), 6.0); },
     [](double x) { return x > 0 && x < 6 ? 1.0 : 0.0; }},
};

class ActivationTest : public testing::TestWithParam<Case> {};

TEST_P(ActivationTest, ValueIsWithinItsBound) {
  const Case& test = GetParam();
  const std::vector<float> x = EveryFloat(kStride);
  std::vector<float> y(x.size());
  Activate(test.activation, x.size(), x.data(), y.data());
  double worst = 0;
  float worst_x = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isinf(x[i])) continue;
    // Where a factor is denormal, or 3 was added to something close to -3, only the absolute error
    // means something.
    const double want = test.f(x[i]);
    const double absolute = test.activation == Activation::kHardSigmoid ? 1e-7 : 1e-42;
    const double error = std::abs(y[i] - want) < absolute ? 0 : UlpError(y[i], want);
    if (error > worst) worst = error, worst_x = x[i];
  }
  EXPECT_LE(worst, test.bound) << "at " << worst_x;
  RecordProperty("ulp", std::to_string(worst));
}

TEST_P(ActivationTest, DerivativeIsWithinItsBound) {
  const Case& test = GetParam();
  if (test.d == nullptr) return;
  std::vector<float> x;
  for (float v = -120; v < 120; v += 0.0137f) x.push_back(v);
  x.insert(x.end(), {0, 1e-20f, -1e-20f, 3, -3, 6, 1e10f, -1e10f});
  std::vector<float> y(x.size()), dy(x.size(), 1), dx(x.size());
  Activate(test.activation, x.size(), x.data(), y.data());
  ActivateBackward(test.activation, x.size(), x.data(), y.data(), dy.data(), dx.data());
  for (size_t i = 0; i < x.size(); ++i) {
    // selu's constants are rounded to float.
    ASSERT_NEAR(dx[i], test.d(x[i]), test.derivative_bound) << "at " << x[i];
  }
  // Upstream derivatives are a factor; results may replace them.
  std::fill(dy.begin(), dy.end(), -2.0f);
  ActivateBackward(test.activation, x.size(), x.data(), y.data(), dy.data(), dy.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(dy[i], -2 * dx[i]);
}

TEST_P(ActivationTest, InPlaceGivesTheSameBits) {
  std::vector<float> x;
  for (float v = -10; v < 10; v += 0.37f) x.push_back(v);
  std::vector<float> y(x.size());
  Activate(GetParam().activation, x.size(), x.data(), y.data());
  Activate(GetParam().activation, x.size(), x.data(), x.data());
  EXPECT_EQ(x, y);
}

TEST_P(ActivationTest, NanStaysNan) {
  float y;
  Activate(GetParam().activation, 1, &kNan, &y);
  EXPECT_TRUE(std::isnan(y));
}

INSTANTIATE_TEST_SUITE_P(All, ActivationTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Activation, KinksAreTensorFlows) {
  const auto derivative_at = [](Activation activation, float x) {
    float y, dy = 1, dx;
    Activate(activation, 1, &x, &y);
    ActivateBackward(activation, 1, &x, &y, &dy, &dx);
    return dx;
  };
  EXPECT_EQ(derivative_at(Activation::kRelu, 0), 0);
  EXPECT_EQ(derivative_at(Activation::kLeakyRelu, 0), 0.2f);
  EXPECT_EQ(derivative_at(Activation::kElu, 0), 1);
  EXPECT_EQ(derivative_at(Activation::kRelu6, 6), 0);
  EXPECT_EQ(derivative_at(Activation::kHardSigmoid, 3), 0);
  EXPECT_EQ(derivative_at(Activation::kHardSigmoid, -3), 0);
}

}  // namespace
}  // namespace tandem
