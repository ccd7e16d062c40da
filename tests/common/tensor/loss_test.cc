// Losses and softmax against plain double-precision formulas; derivatives against those written
// out.
#include "common/tensor/loss.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/tensor/softmax.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

std::vector<float> Uniform(size_t size, float low, float high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(size);
  for (float& v : values) v = low + (high - low) * static_cast<float>(random() >> 40) * 0x1p-24f;
  return values;
}

std::vector<double> SoftmaxOf(const float* x, size_t n) {
  const double largest = *std::max_element(x, x + n);
  std::vector<double> p(n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += p[i] = std::exp(x[i] - largest);
  for (double& v : p) v /= sum;
  return p;
}

// Narrower than a vector, as wide, wider, and much wider.
class RowsTest : public testing::TestWithParam<size_t> {};

TEST_P(RowsTest, SoftmaxAndItsDerivative) {
  const size_t rows = 5, columns = GetParam();
  const std::vector<float> x = Uniform(rows * columns, -20, 20, 1);
  const std::vector<float> dy = Uniform(rows * columns, -1, 1, 2);
  std::vector<float> y(x.size()), dx(x.size());
  Softmax(rows, columns, x.data(), y.data());
  SoftmaxBackward(rows, columns, y.data(), dy.data(), dx.data());
  for (size_t r = 0; r < rows; ++r) {
    const std::vector<double> p = SoftmaxOf(&x[r * columns], columns);
    double dot = 0;
    for (size_t c = 0; c < columns; ++c) dot += p[c] * dy[r * columns + c];
    for (size_t c = 0; c < columns; ++c) {
      EXPECT_NEAR(y[r * columns + c], p[c], 5e-6 * p[c]);
      EXPECT_NEAR(dx[r * columns + c], p[c] * (dy[r * columns + c] - dot), 1e-5 * p[c]);
    }
  }
}

TEST_P(RowsTest, SoftmaxCrossEntropy) {
  const size_t rows = 5, columns = GetParam();
  const std::vector<float> z = Uniform(rows * columns, -20, 20, 3);
  std::vector<float> labels, losses(rows), p(z.size()), d(z.size());
  for (size_t r = 0; r < rows; ++r) labels.push_back(static_cast<float>(r * 3 % columns));
  SoftmaxCrossEntropy(rows, columns, z.data(), labels.data(), 0.25f, losses.data(), p.data(),
                      d.data());
  for (size_t r = 0; r < rows; ++r) {
    const std::vector<double> want = SoftmaxOf(&z[r * columns], columns);
    const size_t label = static_cast<size_t>(labels[r]);
    EXPECT_NEAR(losses[r], -std::log(want[label]), 5e-6);
    for (size_t c = 0; c < columns; ++c) {
      EXPECT_NEAR(p[r * columns + c], want[c], 5e-6 * want[c]);
      EXPECT_NEAR(d[r * columns + c], 0.25 * (want[c] - (c == label ? 1 : 0)), 2e-7);
    }
  }
}

TEST_P(RowsTest, SparseCrossEntropyClipsThenRenormalises) {
  const size_t rows = 5, columns = GetParam();
  std::vector<float> p = Uniform(rows * columns, 0, 1, 4);
  p[0] = 0;  // Clipped up; its derivative is 0.
  p[columns] = 2;
  std::vector<float> labels(rows, 0), losses(rows), d(p.size());
  SparseCrossEntropy(rows, columns, p.data(), labels.data(), 0.5f, losses.data(), d.data());
  for (size_t r = 0; r < rows; ++r) {
    const float* row = &p[r * columns];
    const auto clip = [](double v) { return std::min(std::max(v, 1e-7), 1 - 1e-7); };
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += clip(row[c]);
    EXPECT_NEAR(losses[r], std::log(sum / clip(row[0])), 1e-5);
    for (size_t c = 0; c < columns; ++c) {
      const bool inside = row[c] >= 1e-7 && row[c] <= 1 - 1e-7;
      const double want = inside ? 0.5 * (1 / sum - (c == 0 ? 1 / row[c] : 0)) : 0;
      EXPECT_NEAR(d[r * columns + c], want, 2e-6 * (1 + std::abs(want)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, RowsTest, testing::Values(1, 2, 7, 8, 10, 33, 1000));

// From semantics.md's table: softmax([100, 0, 0]) with label 1 costs 100, not -log of a clip.
TEST(SoftmaxCrossEntropy, DoesNotClip) {
  const std::vector<float> z = {100, 0, 0, -1e30f, 3, 1e30f}, labels = {1, 2};
  std::vector<float> losses(2), p(6);
  SoftmaxCrossEntropy(2, 3, z.data(), labels.data(), 1, losses.data(), p.data(), nullptr);
  EXPECT_EQ(losses, (std::vector<float>{100, 0}));
}

TEST(SoftmaxCrossEntropy, NotANumberReachesTheLoss) {
  const std::vector<float> labels = {0};
  for (float bad : {NAN, INFINITY}) {
    for (size_t at : {0, 4, 9}) {
      std::vector<float> z(10, 1), loss(1), p(10);
      z[at] = bad;
      SoftmaxCrossEntropy(1, 10, z.data(), labels.data(), 1, loss.data(), p.data(), nullptr);
      EXPECT_TRUE(std::isnan(loss[0]));
    }
  }
}

TEST(LogisticCrossEntropy, AgreesWithTheFormula) {
  std::vector<float> z = Uniform(100, -30, 30, 5);
  z.insert(z.end(), {0, 200, -200});
  std::vector<float> labels(z.size()), losses(z.size()), d(z.size());
  for (size_t i = 0; i < z.size(); ++i) labels[i] = static_cast<float>(i % 2);
  for (float smoothing : {0.0f, 0.1f}) {
    LogisticCrossEntropy(z.size(), z.data(), labels.data(), smoothing, 2, losses.data(), d.data());
    for (size_t i = 0; i < z.size(); ++i) {
      const double target = labels[i] * (1 - double{smoothing}) + double{smoothing} / 2, x = z[i];
      const double want = std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::abs(x)));
      EXPECT_NEAR(losses[i], want, 1e-6 * (1 + std::abs(x)));
      EXPECT_NEAR(d[i], 2 * (1 / (1 + std::exp(-x)) - target), 1e-6);
    }
  }
}

TEST(BinaryCrossEntropy, AgreesWithTheFormula) {
  std::vector<float> p = Uniform(100, 0.001f, 0.999f, 6);
  p.insert(p.end(), {0, 1, -1, 2});
  std::vector<float> labels(p.size(), 1), losses(p.size()), d(p.size());
  BinaryCrossEntropy(p.size(), p.data(), labels.data(), 0.2f, 3, losses.data(), d.data());
  for (size_t i = 0; i < p.size(); ++i) {
    const double c = std::min(std::max<double>(p[i], kProbabilityMargin), 1.0 - 0x1p-23);
    EXPECT_NEAR(losses[i], -(0.9 * std::log(c) + 0.1 * std::log(1 - c)), 2e-6);
    const double want = c == p[i] ? 3 * (0.1 / (1 - c) - 0.9 / c) : 0;
    EXPECT_NEAR(d[i], want, 2e-6 * (1 + std::abs(want)));
  }
}

TEST(SquaredError, AgreesWithTheFormula) {
  const std::vector<float> p = {1.5f, -2}, labels = {1, 0};
  std::vector<float> losses(2), d(2);
  SquaredError(2, p.data(), labels.data(), 0.5f, losses.data(), d.data());
  EXPECT_EQ(losses, (std::vector<float>{0.25f, 4}));
  EXPECT_EQ(d, (std::vector<float>{0.5f, -2}));
}

}  // namespace
}  // namespace tandem
