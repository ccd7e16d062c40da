// Gradients of operations against central differences of plain double-precision code. What the
// activations compute is the business of activation_test; here it is how operations are put
// together.
#include "common/autodiff/ops.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "common/autodiff/tape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

std::vector<float> Wave(size_t size, double phase) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(std::sin(1.7 * i + phase));
  return values;
}

std::vector<double> Wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

double F(Activation activation, double x) {
  switch (activation) {
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kGelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    default:
      return x;
  }
}

std::vector<double> ApplyRows(Activation activation, size_t columns, std::vector<double> x) {
  for (double& v : x) v = F(activation, v);
  if (activation != Activation::kSoftmax) return x;
  for (size_t r = 0; r < x.size(); r += columns) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += std::exp(x[r + c]);
    for (size_t c = 0; c < columns; ++c) x[r + c] = std::exp(x[r + c]) / sum;
  }
  return x;
}

std::vector<double> PlainDense(const DenseShape& shape, Activation activation,
                               const std::vector<double>& x, const std::vector<double>& kernel,
                               const std::vector<double>& bias) {
  std::vector<double> y(shape.rows * shape.units, 0);
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t u = 0; u < shape.units; ++u) {
      double& sum = y[r * shape.units + u];
      if (!bias.empty()) sum = bias[u];
      for (size_t i = 0; i < shape.inputs; ++i) {
        sum += x[r * shape.inputs + i] * kernel[i * shape.units + u];
      }
    }
  }
  return ApplyRows(activation, shape.units, y);
}

// sum of y[i] dy[i], whose derivative with respect to y is dy.
double Weighted(const std::vector<double>& y, const std::vector<float>& dy) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  return sum;
}

void ExpectDifferences(const std::vector<float>& gradient, std::vector<double> at,
                       const std::function<double(const std::vector<double>&)>& f) {
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < at.size(); ++i) {
    const double middle = at[i];
    at[i] = middle + kStep;
    const double above = f(at);
    at[i] = middle - kStep;
    const double below = f(at);
    at[i] = middle;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 2e-5) << i;
  }
}

struct DenseCase {
  DenseShape shape;
  Activation activation;
  bool bias;
};

class DenseTest : public testing::TestWithParam<DenseCase> {};

TEST_P(DenseTest, ValueAndGradients) {
  const auto& [shape, activation, has_bias] = GetParam();
  const std::vector<float> x = Wave(shape.rows * shape.inputs, 0.3);
  const std::vector<float> kernel = Wave(shape.inputs * shape.units, 1.1);
  const std::vector<float> bias = Wave(has_bias ? shape.units : 0, 2.2);
  const std::vector<float> dy = Wave(shape.rows * shape.units, 0.7);
  std::vector<float> dx(x.size(), 9), dkernel(kernel.size(), 9), dbias(bias.size(), 9);

  Tape tape;
  tape.Begin(Tape::Mode::kRecord);
  // The input is a parameter, so that it has a gradient too.
  const Var xv = tape.Parameter(x.data(), dx.data(), x.size());
  const Var kv = tape.Parameter(kernel.data(), dkernel.data(), kernel.size());
  const Var bv = has_bias ? tape.Parameter(bias.data(), dbias.data(), bias.size()) : Var();
  const Var y = Dense(&tape, shape, activation, xv, kv, bv);
  const std::vector<double> want = PlainDense(shape, activation, Wide(x), Wide(kernel), Wide(bias));
  ASSERT_EQ(tape.size(y), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(tape.value(y)[i], want[i], 1e-5);
  std::copy(dy.begin(), dy.end(), tape.SeedGradient(y));
  EXPECT_EQ(tape.Backward().id, -1);

  ExpectDifferences(dx, Wide(x), [&](const std::vector<double>& v) {
    return Weighted(PlainDense(shape, activation, v, Wide(kernel), Wide(bias)), dy);
  });
  ExpectDifferences(dkernel, Wide(kernel), [&](const std::vector<double>& v) {
    return Weighted(PlainDense(shape, activation, Wide(x), v, Wide(bias)), dy);
  });
  ExpectDifferences(dbias, Wide(bias), [&](const std::vector<double>& v) {
    return Weighted(PlainDense(shape, activation, Wide(x), Wide(kernel), v), dy);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, DenseTest,
                         testing::Values(DenseCase{{1, 1, 1}, Activation::kLinear, true},
                                         DenseCase{{7, 3, 5}, Activation::kTanh, true},
                                         DenseCase{{7, 3, 5}, Activation::kGelu, true},
                                         DenseCase{{3, 9, 4}, Activation::kSoftmax, false},
                                         DenseCase{{1, 17, 1}, Activation::kGelu, false},
                                         DenseCase{{18, 17, 16}, Activation::kTanh, true}));

// Two branches of one input meet again: their gradients add up, whichever operation comes first.
TEST(Tape, GradientsOfBranchesAddUp) {
  const std::vector<float> x = Wave(6, 0.1), w = Wave(6, 0.5), dy = Wave(6, 0.9);
  std::vector<float> dx(6), dw(6);
  Tape tape;
  tape.Begin(Tape::Mode::kRecord);
  const Var xv = tape.Parameter(x.data(), dx.data(), 6);
  const Var left = Activate(&tape, Activation::kTanh, 3, 2, xv);
  const Var right = Activate(&tape, Activation::kGelu, 3, 2, xv);
  std::copy(dy.begin(), dy.end(), tape.SeedGradient(left));
  std::copy(dy.begin(), dy.end(), tape.SeedGradient(right));
  tape.Backward();
  ExpectDifferences(dx, Wide(x), [&](const std::vector<double>& v) {
    return Weighted(ApplyRows(Activation::kTanh, 2, v), dy) +
           Weighted(ApplyRows(Activation::kGelu, 2, v), dy);
  });

  // A kernel that is used twice.
  tape.Begin(Tape::Mode::kRecord);
  const Var input = tape.Constant(x.data(), 6);
  const Var wv = tape.Parameter(w.data(), dw.data(), 4);
  const Var once = Dense(&tape, {3, 2, 2}, Activation::kTanh, input, wv, Var());
  const Var twice = Dense(&tape, {3, 2, 2}, Activation::kLinear, once, wv, Var());
  std::copy(dy.begin(), dy.end(), tape.SeedGradient(twice));
  tape.Backward();
  ExpectDifferences({dw.begin(), dw.begin() + 4}, {w.begin(), w.begin() + 4},
                    [&](const std::vector<double>& v) {
                      const auto h = PlainDense({3, 2, 2}, Activation::kTanh, Wide(x), v, {});
                      return Weighted(PlainDense({3, 2, 2}, Activation::kLinear, h, v, {}), dy);
                    });
}

TEST(Tape, ForwardOnlyHasNoGradients) {
  const std::vector<float> x = Wave(4, 0), w = Wave(4, 1);
  Tape tape;
  tape.Begin(Tape::Mode::kForwardOnly);
  const Var y = Dense(&tape, {2, 2, 2}, Activation::kTanh, tape.Constant(x.data(), 4),
                      tape.Parameter(w.data(), nullptr, 4), Var());
  EXPECT_EQ(tape.SeedGradient(y), nullptr);
  EXPECT_EQ(tape.Backward().id, -1);
}

TEST(Dense, ReportsTheParameterWhoseGradientOverflows) {
  const std::vector<float> x = {1e30f, 1}, w = {0, 0}, b = {0};
  std::vector<float> dw(2), db(1);
  const auto not_finite = [&](float dy, Var* kernel, Var* bias) {
    Tape tape;
    tape.Begin(Tape::Mode::kRecord);
    *kernel = tape.Parameter(w.data(), dw.data(), 2);
    *bias = tape.Parameter(b.data(), db.data(), 1);
    const Var y =
        Dense(&tape, {1, 2, 1}, Activation::kLinear, tape.Constant(x.data(), 2), *kernel, *bias);
    *tape.SeedGradient(y) = dy;
    return tape.Backward().id;
  };
  Var kernel, bias;
  EXPECT_EQ(not_finite(1, &kernel, &bias), -1);
  EXPECT_EQ(not_finite(1e8f, &kernel, &bias), -1);  // Past the bound, but finite: read to be sure.
  EXPECT_EQ(not_finite(1e9f, &kernel, &bias), kernel.id);
  EXPECT_EQ(not_finite(std::numeric_limits<float>::quiet_NaN(), &kernel, &bias), kernel.id);
}

}  // namespace
}  // namespace tandem
