#include "coordinator/job_optimizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "coordinator/job_checks.h"

namespace tandem {
namespace {

// A decay rate of 1 would never forget, and its bias correction divides by zero.
absl::Status CheckBeta(absl::string_view path, float beta) {
  if (beta >= 0 && beta < 1) return absl::OkStatus();
  return Fault(path, absl::StrCat("is ", beta, "; expected a number in [0, 1)"));
}

// Epsilon keeps the divisor from zero.
absl::Status CheckEpsilon(absl::string_view path, float epsilon) {
  if (epsilon > 0) return absl::OkStatus();
  return Fault(path, absl::StrCat("is ", epsilon, "; expected a number above 0"));
}

absl::Status FinishSgd(v1::Sgd* sgd) {
  if (!sgd->has_learning_rate()) sgd->set_learning_rate(0.01f);
  if (!sgd->has_momentum()) sgd->set_momentum(0);
  if (!sgd->has_nesterov()) sgd->set_nesterov(false);
  TANDEM_RETURN_IF_ERROR(CheckAtLeast("optimizer.sgd.learning_rate", sgd->learning_rate(), 0.0f));
  return CheckRange("optimizer.sgd.momentum", sgd->momentum(), 0.0f, 1.0f);
}

absl::Status FinishAdam(v1::Adam* adam) {
  if (!adam->has_learning_rate()) adam->set_learning_rate(0.001f);
  if (!adam->has_beta_1()) adam->set_beta_1(0.9f);
  if (!adam->has_beta_2()) adam->set_beta_2(0.999f);
  if (!adam->has_epsilon()) adam->set_epsilon(1e-7f);
  TANDEM_RETURN_IF_ERROR(CheckAtLeast("optimizer.adam.learning_rate", adam->learning_rate(), 0.0f));
  TANDEM_RETURN_IF_ERROR(CheckBeta("optimizer.adam.beta_1", adam->beta_1()));
  TANDEM_RETURN_IF_ERROR(CheckBeta("optimizer.adam.beta_2", adam->beta_2()));
  return CheckEpsilon("optimizer.adam.epsilon", adam->epsilon());
}

absl::Status FinishAdagrad(v1::Adagrad* adagrad) {
  if (!adagrad->has_learning_rate()) adagrad->set_learning_rate(0.001f);
  if (!adagrad->has_initial_accumulator_value()) adagrad->set_initial_accumulator_value(0.1f);
  if (!adagrad->has_epsilon()) adagrad->set_epsilon(1e-7f);
  TANDEM_RETURN_IF_ERROR(
      CheckAtLeast("optimizer.adagrad.learning_rate", adagrad->learning_rate(), 0.0f));
  TANDEM_RETURN_IF_ERROR(CheckAtLeast("optimizer.adagrad.initial_accumulator_value",
                                      adagrad->initial_accumulator_value(), 0.0f));
  return CheckEpsilon("optimizer.adagrad.epsilon", adagrad->epsilon());
}

absl::Status FinishSchedule(v1::LearningRateSchedule* schedule) {
  constexpr absl::string_view kPath = "optimizer.learning_rate_schedule";
  TANDEM_RETURN_IF_ERROR(CheckChosen(kPath, *schedule, "has no kind"));
  v1::PolynomialDecay* decay = schedule->mutable_polynomial_decay();
  if (!decay->has_end_learning_rate()) decay->set_end_learning_rate(0.0001f);
  TANDEM_RETURN_IF_ERROR(CheckAtLeast(absl::StrCat(kPath, ".polynomial_decay.decay_steps"),
                                      decay->decay_steps(), uint64_t{1}));
  return CheckAtLeast(absl::StrCat(kPath, ".polynomial_decay.end_learning_rate"),
                      decay->end_learning_rate(), 0.0f);
}

}  // namespace

absl::Status FinishOptimizer(v1::Optimizer* optimizer) {
  TANDEM_RETURN_IF_ERROR(CheckChosen("optimizer", *optimizer, "is required"));
  if (optimizer->has_learning_rate_schedule()) {
    TANDEM_RETURN_IF_ERROR(FinishSchedule(optimizer->mutable_learning_rate_schedule()));
  }
  switch (optimizer->kind_case()) {
    case v1::Optimizer::kSgd:
      return FinishSgd(optimizer->mutable_sgd());
    case v1::Optimizer::kAdam:
      return FinishAdam(optimizer->mutable_adam());
    case v1::Optimizer::kAdagrad:
      return FinishAdagrad(optimizer->mutable_adagrad());
    case v1::Optimizer::KIND_NOT_SET:
      break;  // Refused above.
  }
  return absl::OkStatus();
}

}  // namespace tandem
