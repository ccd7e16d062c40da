// The learning rate of an update: constant, or by a schedule.
#ifndef TANDEM_COMMON_OPTIM_LEARNING_RATE_H_
#define TANDEM_COMMON_OPTIM_LEARNING_RATE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tandem {

// Immutable, hence thread-safe. Float32 in Keras's order of operations, without library functions:
// the same bits on every machine.
class LearningRate {
 public:
  // INVALID_ARGUMENT names the field, for example
  // `optimizer.learning_rate_schedule.polynomial_decay.decay_steps`.
  static absl::StatusOr<LearningRate> Create(float initial,
                                             const v1::LearningRateSchedule& schedule,
                                             uint32_t updates_per_step);

  // Of update number `update`, counted from 1.
  float At(uint64_t update) const {
    if (decay_steps_ == 0) return initial_;
    const uint64_t step = (update - 1) / updates_per_step_;
    const float passed = static_cast<float>(step < decay_steps_ ? step : decay_steps_) /
                         static_cast<float>(decay_steps_);
    return (initial_ - end_) * (1.0f - passed) + end_;
  }

 private:
  LearningRate(float initial, float end, uint64_t decay_steps, uint32_t updates_per_step)
      : initial_(initial),
        end_(end),
        decay_steps_(decay_steps),
        updates_per_step_(updates_per_step) {}

  float initial_, end_;
  uint64_t decay_steps_;  // 0: constant.
  uint32_t updates_per_step_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_OPTIM_LEARNING_RATE_H_
