#include "common/optim/learning_rate.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace tandem {

absl::StatusOr<LearningRate> LearningRate::Create(float initial,
                                                  const v1::LearningRateSchedule& schedule,
                                                  uint32_t updates_per_step) {
  if (!schedule.has_polynomial_decay()) return LearningRate(initial, 0, 0, 1);
  constexpr char kPath[] = "optimizer.learning_rate_schedule.polynomial_decay.";
  const v1::PolynomialDecay& decay = schedule.polynomial_decay();
  const float end = decay.has_end_learning_rate() ? decay.end_learning_rate() : 0.0001f;
  if (decay.decay_steps() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kPath, "decay_steps: is 0; expected at least 1"));
  }
  if (!std::isfinite(end) || end < 0) {
    return absl::InvalidArgumentError(absl::StrCat(kPath, "end_learning_rate: is ", end,
                                                   "; expected a finite number, at least 0"));
  }
  return LearningRate(initial, end, decay.decay_steps(), updates_per_step);
}

}  // namespace tandem
