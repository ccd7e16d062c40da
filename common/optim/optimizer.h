// The optimizers: element-wise updates with Keras 3's formulas, in one fused pass over memory.
//
// Element-wise means that how a variable is cut into blocks cannot show in the bits. Only IEEE
// add, multiply, divide and square root are used, in a fixed order and without contraction, so the
// bits do not depend on the processor either.
#ifndef TANDEM_COMMON_OPTIM_OPTIMIZER_H_
#define TANDEM_COMMON_OPTIM_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tandem {

// Immutable after creation, hence thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Slots: float arrays beside the weights, of the same length (momentum, m, v, ...).
  virtual int num_slots() const = 0;
  // What every element of slot `slot` starts at.
  virtual float initial_slot_value(int slot) const = 0;

  // One update of n elements. `step` counts updates from 1 (t in Keras's formulas).
  // out[i] = the new weight from weights[i] and gradient[i]; slots[k][i] are updated in place.
  // `out` may be `weights` itself, else the arrays do not overlap. Any alignment of 4 bytes.
  virtual void Apply(uint64_t step, size_t n, const float* gradient, const float* weights,
                     float* out, float* const* slots) const = 0;
};

// INVALID_ARGUMENT, with the field's path (`optimizer.adam.beta_1`), when `spec` is out of range.
// `updates_per_step` (at least 1): how many updates make a step of the job, for the learning rate's
// schedule: update number u belongs to step (u - 1) / updates_per_step.
absl::StatusOr<std::unique_ptr<const Optimizer>> CreateOptimizer(const v1::Optimizer& spec,
                                                                 uint32_t updates_per_step = 1);

}  // namespace tandem

#endif  // TANDEM_COMMON_OPTIM_OPTIMIZER_H_
