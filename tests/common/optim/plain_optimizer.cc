#include "tests/common/optim/plain_optimizer.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace tandem {
namespace {

// The double that a person meant by a float of at most six digits.
double Meant(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

void PlainSgd(const v1::Sgd& spec, size_t i, float g, float w, float* out, float* const* slots) {
  const float rate = spec.has_learning_rate() ? spec.learning_rate() : 0.01f;
  const float momentum = spec.momentum();
  if (momentum == 0) {
    out[i] = w - g * rate;
    return;
  }
  float& m = slots[0][i];
  m = m * momentum - g * rate;
  out[i] = spec.nesterov() ? w + (m * momentum - g * rate) : w + m;
}

void PlainAdam(const v1::Adam& spec, uint64_t step, size_t i, float g, float w, float* out,
               float* const* slots) {
  const float rate = spec.has_learning_rate() ? spec.learning_rate() : 0.001f;
  const float beta_1 = spec.has_beta_1() ? spec.beta_1() : 0.9f;
  const float beta_2 = spec.has_beta_2() ? spec.beta_2() : 0.999f;
  const float epsilon = spec.has_epsilon() ? spec.epsilon() : 1e-7f;
  const float t = static_cast<float>(step);
  const float power_1 = static_cast<float>(std::pow(static_cast<double>(beta_1), t));
  const float power_2 = static_cast<float>(std::pow(static_cast<double>(beta_2), t));
  const float alpha = rate * std::sqrt(1 - power_2) / (1 - power_1);
  float& m = slots[0][i];
  float& v = slots[1][i];
  m = m + (g - m) * static_cast<float>(1 - Meant(beta_1));
  v = v + (g * g - v) * static_cast<float>(1 - Meant(beta_2));
  out[i] = w - m * alpha / (std::sqrt(v) + epsilon);
}

void PlainAdagrad(const v1::Adagrad& spec, size_t i, float g, float w, float* out,
                  float* const* slots) {
  const float rate = spec.has_learning_rate() ? spec.learning_rate() : 0.001f;
  const float epsilon = spec.has_epsilon() ? spec.epsilon() : 1e-7f;
  float& a = slots[0][i];
  a = a + g * g;
  out[i] = w - rate * g / std::sqrt(a + epsilon);
}

}  // namespace

v1::Optimizer ParseOptimizer(absl::string_view text) {
  v1::Optimizer spec;
  if (!google::protobuf::TextFormat::ParseFromString(std::string(text), &spec)) std::abort();
  return spec;
}

std::vector<float> PlainInitialSlots(const v1::Optimizer& spec) {
  if (spec.has_sgd()) return std::vector<float>(spec.sgd().momentum() != 0 ? 1 : 0, 0.0f);
  if (spec.has_adam()) return {0.0f, 0.0f};
  const auto& adagrad = spec.adagrad();
  return {adagrad.has_initial_accumulator_value() ? adagrad.initial_accumulator_value() : 0.1f};
}

void PlainApply(const v1::Optimizer& spec, uint64_t step, size_t n, const float* gradient,
                const float* weights, float* out, float* const* slots) {
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i], w = weights[i];
    if (spec.has_sgd()) PlainSgd(spec.sgd(), i, g, w, out, slots);
    if (spec.has_adam()) PlainAdam(spec.adam(), step, i, g, w, out, slots);
    if (spec.has_adagrad()) PlainAdagrad(spec.adagrad(), i, g, w, out, slots);
  }
}

}  // namespace tandem
