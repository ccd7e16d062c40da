#include "common/tensor/elementwise.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/tensor/ulp.h"

namespace tandem {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kStride = 1009;  // Prime: every exponent, and mantissas of every kind.

using Kernel = void (*)(size_t, const float*, float*);

void ExpectWithin(double bound, Kernel kernel, double (*exact)(double)) {
  const std::vector<float> x = EveryFloat(kStride);
  std::vector<float> y(x.size());
  kernel(x.size(), x.data(), y.data());
  double worst = 0;
  float worst_x = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = UlpError(y[i], exact(x[i]));
    if (error > worst) worst = error, worst_x = x[i];
  }
  EXPECT_LE(worst, bound) << "at " << worst_x;
  testing::Test::RecordProperty("ulp", std::to_string(worst));
}

float One(Kernel kernel, float x) {
  float y;
  kernel(1, &x, &y);
  return y;
}

TEST(Exp, IsWithinItsBound) {
  ExpectWithin(1.1, Exp, [](double x) { return std::exp(x); });
}
TEST(Log, IsWithinItsBound) {
  ExpectWithin(1.0, Log, [](double x) { return std::log(x); });
}
TEST(Tanh, IsWithinItsBound) {
  ExpectWithin(2.5, Tanh, [](double x) { return std::tanh(x); });
}

TEST(Exp, Extremes) {
  EXPECT_EQ(One(Exp, 0), 1);
  EXPECT_EQ(One(Exp, kInf), kInf);
  EXPECT_EQ(One(Exp, -kInf), 0);
  EXPECT_EQ(One(Exp, 88.73f), kInf);
  EXPECT_TRUE(std::isnan(One(Exp, kNan)));
}

TEST(Log, Extremes) {
  EXPECT_EQ(One(Log, 1), 0);
  EXPECT_EQ(One(Log, 0), -kInf);
  EXPECT_EQ(One(Log, -0.0f), -kInf);
  EXPECT_EQ(One(Log, kInf), kInf);
  EXPECT_TRUE(std::isnan(One(Log, -1)));
  EXPECT_TRUE(std::isnan(One(Log, -kInf)));
  EXPECT_TRUE(std::isnan(One(Log, kNan)));
}

TEST(Tanh, Extremes) {
  EXPECT_EQ(One(Tanh, kInf), 1);
  EXPECT_EQ(One(Tanh, -kInf), -1);
  EXPECT_TRUE(std::signbit(One(Tanh, -0.0f)));
  EXPECT_TRUE(std::isnan(One(Tanh, kNan)));
}

// A value's place in the array decides whether vector or tail code computes it.
TEST(Kernels, BitsDoNotDependOnThePlaceInTheArray) {
  std::vector<float> x(37);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.37f * static_cast<float>(i + 1);
  for (Kernel kernel : {Kernel{Exp}, Kernel{Log}, Kernel{Tanh}}) {
    std::vector<float> all(x.size());
    kernel(x.size(), x.data(), all.data());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(One(kernel, x[i]), all[i]);
    std::vector<float> in_place = x;
    kernel(x.size(), in_place.data(), in_place.data());
    EXPECT_EQ(in_place, all);
  }
}

TEST(ColumnSums, AddsRowsInOrder) {
  // 1e8 swallows a lone 1: only the order first row, second row, third row gives these sums.
  const std::vector<float> matrix = {1, 1e8f, -1, 1e8f, 1, 2, -1e8f, -1e8f, 4};
  std::vector<float> sums(3, 7);
  ColumnSums(3, 3, matrix.data(), false, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{0, 0, 5}));
  ColumnSums(1, 3, matrix.data(), true, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{1, 1e8f, 4}));
}

TEST(AddToRows, AddsTheRowToEach) {
  std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  const std::vector<float> row = {10, 20, 30};
  AddToRows(2, 3, row.data(), matrix.data());
  EXPECT_EQ(matrix, (std::vector<float>{11, 22, 33, 14, 25, 36}));
}

TEST(MaxAbs, FindsTheLargestAndWhatIsNotFinite) {
  std::vector<float> x(41, -1);
  EXPECT_EQ(MaxAbs(0, x.data()), 0);
  EXPECT_EQ(MaxAbs(x.size(), x.data()), 1);
  x[40] = -3;
  EXPECT_EQ(MaxAbs(x.size(), x.data()), 3);
  x[3] = -kInf;
  EXPECT_EQ(MaxAbs(x.size(), x.data()), kInf);
  x[17] = kNan;
  EXPECT_TRUE(std::isnan(MaxAbs(x.size(), x.data())));
}

}  // namespace
}  // namespace tandem
