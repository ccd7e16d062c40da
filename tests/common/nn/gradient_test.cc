// Gradients of whole models against central differences of the loss in plain double precision.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "common/nn/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/nn/jobs.h"

namespace tandem {
namespace {

using Vector = std::vector<double>;
using Function = double (*)(double);

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Smooth functions only: a difference across a kink means nothing.
const std::pair<const char*, Function> kFunctions[] = {
    {"linear", [](double x) { return x; }},
    {"sigmoid", Sigmoid},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
    {"silu", [](double x) { return x * Sigmoid(x); }},
    {"gelu", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    {"exponential", [](double x) { return std::exp(x); }},
};

struct Network {
  size_t inputs, hidden, outputs;

  // Outputs of one example: dense, f, dense.
  Vector Forward(const Vector& w, const float* x, Function f) const {
    const double* kernel = w.data();
    const double* bias = kernel + inputs * hidden;
    const double* kernel2 = bias + hidden;
    const double* bias2 = kernel2 + hidden * outputs;
    Vector y(bias2, bias2 + outputs);
    for (size_t h = 0; h < hidden; ++h) {
      double sum = bias[h];
      for (size_t i = 0; i < inputs; ++i) sum += x[i] * kernel[i * hidden + h];
      for (size_t o = 0; o < outputs; ++o) y[o] += f(sum) * kernel2[h * outputs + o];
    }
    return y;
  }
};

double CrossEntropy(const Vector& z, float label) {
  double sum = 0;
  for (double v : z) sum += std::exp(v);
  return std::log(sum) - z[static_cast<size_t>(label)];
}
double Logistic(const Vector& z, float label) { return std::log1p(std::exp(z[0])) - label * z[0]; }
double Squared(const Vector& z, float label) { return (z[0] - label) * (z[0] - label); }

struct Head {
  const char* loss;
  const char* activation;
  size_t outputs;
  double (*f)(const Vector&, float);
};
const Head kHeads[] = {{"sparse_categorical_crossentropy {}", "softmax", 3, CrossEntropy},
                       {"binary_crossentropy {}", "sigmoid", 1, Logistic},
                       {"mean_squared_error {}", "linear", 1, Squared}};

class GradientTest : public testing::TestWithParam<std::tuple<Head, int, int>> {};

TEST_P(GradientTest, IsTheSlopeOfTheLoss) {
  const auto& [head, function, batch_size] = GetParam();
  const auto& [name, f] = kFunctions[function];
  const Network network = {7, 5, head.outputs};
  const auto model =
      ModelOf(JobOf("model { layers { dense { units: 5 activation: '" + std::string(name) +
                    "' } } layers { dense { units: " + std::to_string(head.outputs) +
                    " activation: '" + head.activation + "' } } } loss { " + head.loss + " }"),
              {7});
  const std::vector<float> weights = InitialWeights(*model, 3);
  const Batch batch = RandomBatch(batch_size, 7, head.outputs == 1 ? 2 : 3, 4);
  constexpr float kScale = 0.25f;
  const auto loss_at = [&, f = f, head = head](const Vector& w) {
    double sum = 0;
    for (size_t i = 0; i < batch.size; ++i) {
      sum += head.f(network.Forward(w, &batch.features[i * 7], f), batch.labels[i]);
    }
    return sum;
  };

  std::vector<float> gradient(weights.size());
  v1::Sums sums;
  ASSERT_TRUE(Replica::Create(model.get())
                  ->ComputeGradient(batch, weights.data(), kScale, gradient.data(), &sums)
                  .ok());
  Vector w(weights.begin(), weights.end());
  EXPECT_NEAR(sums.loss(), loss_at(w), 1e-6 * batch.size);
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < w.size(); ++i) {
    const double middle = w[i];
    w[i] = middle + kStep;
    const double above = loss_at(w);
    w[i] = middle - kStep;
    const double slope = (above - loss_at(w)) / (2 * kStep);
    w[i] = middle;
    EXPECT_NEAR(gradient[i], kScale * slope, 2e-6 * batch.size) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradientTest,
                         testing::Combine(testing::ValuesIn(kHeads),
                                          testing::Range(0,
                                                         static_cast<int>(std::size(kFunctions))),
                                          testing::Values(1, 6)));

}  // namespace
}  // namespace tandem
