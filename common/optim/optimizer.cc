#include "common/optim/optimizer.h"

#include <cassert>
#include <charconv>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/optim/kernels.h"
#include "common/optim/learning_rate.h"

namespace tandem {
namespace {

// The shortest decimal that rounds to `value`: what a person wrote in the job file, if they wrote
// at most six digits.
std::string ShortestDecimal(float value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

// 1 - beta as Keras has it: beta is a Python float (a double), subtracted from 1 in double, and
// only the result becomes float32. So 1 - 0.9 is 0.1f, where 1 - 0.9f would be 0.100000024. The job
// file holds a float; its shortest decimal is the double that Keras would have been given.
float OneMinus(float beta) {
  const std::string text = ShortestDecimal(beta);
  double decimal = beta;
  std::from_chars(text.data(), text.data() + text.size(), decimal);
  return static_cast<float>(1.0 - decimal);
}

// beta^step rounded to float32, which is what Keras's float32 `pow` gives. By squaring, 64 rounds
// at most, in the 64-bit significand of long double: the relative error is below step * 2^-64, and
// for beta < 1 the power is 0 in float32 long before that shows (the largest float32 below 1 has
// vanished after 2^31 steps). Not libm's powf, whose last bit depends on the processor.
float Power(float beta, uint64_t step) {
  long double power = 1, square = beta;
  for (; step != 0; step >>= 1, square *= square) {
    if (step & 1) power *= square;
  }
  return static_cast<float>(power);
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(LearningRate rate) : rate_(rate) {}

  int num_slots() const override { return 0; }
  float initial_slot_value(int) const override { return 0; }
  void Apply(uint64_t step, size_t n, const float* gradient, const float* weights, float* out,
             float* const*) const override {
    optim_internal::SgdKernel(n, rate_.At(step), gradient, weights, out);
  }

 private:
  const LearningRate rate_;
};

class MomentumSgd final : public Optimizer {
 public:
  MomentumSgd(LearningRate rate, float momentum, bool nesterov)
      : rate_(rate), momentum_(momentum), nesterov_(nesterov) {}

  int num_slots() const override { return 1; }
  float initial_slot_value(int) const override { return 0; }
  void Apply(uint64_t step, size_t n, const float* gradient, const float* weights, float* out,
             float* const* slots) const override {
    const auto kernel =
        nesterov_ ? &optim_internal::NesterovKernel : &optim_internal::MomentumKernel;
    kernel(n, rate_.At(step), momentum_, gradient, weights, out, slots[0]);
  }

 private:
  const LearningRate rate_;
  const float momentum_;
  const bool nesterov_;
};

class Adam final : public Optimizer {
 public:
  Adam(LearningRate rate, float beta_1, float beta_2, float epsilon)
      : rate_(rate),
        beta_1_(beta_1),
        beta_2_(beta_2),
        epsilon_(epsilon),
        one_minus_beta_1_(OneMinus(beta_1)),
        one_minus_beta_2_(OneMinus(beta_2)) {}

  int num_slots() const override { return 2; }
  float initial_slot_value(int) const override { return 0; }
  void Apply(uint64_t step, size_t n, const float* gradient, const float* weights, float* out,
             float* const* slots) const override {
    assert(step >= 1);
    // Float32 throughout, as Keras: lr * sqrt(1 - beta_2^t) / (1 - beta_1^t).
    const float correction_1 = 1.0f - Power(beta_1_, step);
    const float correction_2 = std::sqrt(1.0f - Power(beta_2_, step));
    const float alpha = rate_.At(step) * correction_2 / correction_1;
    optim_internal::AdamKernel(n, {alpha, one_minus_beta_1_, one_minus_beta_2_, epsilon_}, gradient,
                               weights, out, slots[0], slots[1]);
  }

 private:
  const LearningRate rate_;
  const float beta_1_, beta_2_, epsilon_;
  const float one_minus_beta_1_, one_minus_beta_2_;
};

class Adagrad final : public Optimizer {
 public:
  Adagrad(LearningRate rate, float initial_accumulator, float epsilon)
      : rate_(rate), initial_accumulator_(initial_accumulator), epsilon_(epsilon) {}

  int num_slots() const override { return 1; }
  float initial_slot_value(int) const override { return initial_accumulator_; }
  void Apply(uint64_t step, size_t n, const float* gradient, const float* weights, float* out,
             float* const* slots) const override {
    optim_internal::AdagradKernel(n, rate_.At(step), epsilon_, gradient, weights, out, slots[0]);
  }

 private:
  const LearningRate rate_;
  const float initial_accumulator_, epsilon_;
};

absl::Status Refuse(const char* field, float value, const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer.", field, ": is ", ShortestDecimal(value), "; expected ", expected));
}

absl::Status CheckAtLeastZero(const char* field, float value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return Refuse(field, value, "a finite number, at least 0");
}

absl::Status CheckBeta(const char* field, float value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return Refuse(field, value, "a number in [0, 1)");
}

// Makes the learning rate, with the job's schedule, from the optimizer's own field.
using RateMaker = std::function<absl::StatusOr<LearningRate>(float)>;
using OptimizerOr = absl::StatusOr<std::unique_ptr<const Optimizer>>;

OptimizerOr Create(const v1::Sgd& spec, const RateMaker& make_rate) {
  const float rate = spec.has_learning_rate() ? spec.learning_rate() : 0.01f;
  const float momentum = spec.momentum();
  TANDEM_RETURN_IF_ERROR(CheckAtLeastZero("sgd.learning_rate", rate));
  if (!(momentum >= 0 && momentum <= 1)) {
    return Refuse("sgd.momentum", momentum, "a number in [0, 1]");
  }
  TANDEM_ASSIGN_OR_RETURN(const LearningRate scheduled, make_rate(rate));
  // As Keras: without momentum there is no slot, and `nesterov` changes nothing.
  if (momentum == 0) return std::make_unique<Sgd>(scheduled);
  return std::make_unique<MomentumSgd>(scheduled, momentum, spec.nesterov());
}

OptimizerOr Create(const v1::Adam& spec, const RateMaker& make_rate) {
  const float rate = spec.has_learning_rate() ? spec.learning_rate() : 0.001f;
  const float beta_1 = spec.has_beta_1() ? spec.beta_1() : 0.9f;
  const float beta_2 = spec.has_beta_2() ? spec.beta_2() : 0.999f;
  const float epsilon = spec.has_epsilon() ? spec.epsilon() : 1e-7f;
  TANDEM_RETURN_IF_ERROR(CheckAtLeastZero("adam.learning_rate", rate));
  TANDEM_RETURN_IF_ERROR(CheckBeta("adam.beta_1", beta_1));
  TANDEM_RETURN_IF_ERROR(CheckBeta("adam.beta_2", beta_2));
  TANDEM_RETURN_IF_ERROR(CheckAtLeastZero("adam.epsilon", epsilon));
  TANDEM_ASSIGN_OR_RETURN(const LearningRate scheduled, make_rate(rate));
  return std::make_unique<Adam>(scheduled, beta_1, beta_2, epsilon);
}

OptimizerOr Create(const v1::Adagrad& spec, const RateMaker& make_rate) {
  const float rate = spec.has_learning_rate() ? spec.learning_rate() : 0.001f;
  const float initial =
      spec.has_initial_accumulator_value() ? spec.initial_accumulator_value() : 0.1f;
  const float epsilon = spec.has_epsilon() ? spec.epsilon() : 1e-7f;
  TANDEM_RETURN_IF_ERROR(CheckAtLeastZero("adagrad.learning_rate", rate));
  TANDEM_RETURN_IF_ERROR(CheckAtLeastZero("adagrad.initial_accumulator_value", initial));
  TANDEM_RETURN_IF_ERROR(CheckAtLeastZero("adagrad.epsilon", epsilon));
  TANDEM_ASSIGN_OR_RETURN(const LearningRate scheduled, make_rate(rate));
  return std::make_unique<Adagrad>(scheduled, initial, epsilon);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Optimizer>> CreateOptimizer(const v1::Optimizer& spec,
                                                                 uint32_t updates_per_step) {
  const RateMaker make_rate = [&](float initial) {
    return LearningRate::Create(initial, spec.learning_rate_schedule(), updates_per_step);
  };
  switch (spec.kind_case()) {
    case v1::Optimizer::kSgd:
      return Create(spec.sgd(), make_rate);
    case v1::Optimizer::kAdam:
      return Create(spec.adam(), make_rate);
    case v1::Optimizer::kAdagrad:
      return Create(spec.adagrad(), make_rate);
    case v1::Optimizer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("optimizer: is not set; expected one of sgd, adam, adagrad");
}

}  // namespace tandem
