// The optimizers as anyone would write them: one element at a time, without vectors, from the same
// message. The oracle of the fast ones, for optimizers that CreateOptimizer accepts.
#ifndef TANDEM_TESTS_COMMON_OPTIM_PLAIN_OPTIMIZER_H_
#define TANDEM_TESTS_COMMON_OPTIM_PLAIN_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace tandem {

// Fails the process when `text` is not a textproto.
v1::Optimizer ParseOptimizer(absl::string_view text);

// What each slot starts at: as many values as there are slots.
std::vector<float> PlainInitialSlots(const v1::Optimizer& spec);

// Optimizer::Apply.
void PlainApply(const v1::Optimizer& spec, uint64_t step, size_t n, const float* gradient,
                const float* weights, float* out, float* const* slots);

}  // namespace tandem

#endif  // TANDEM_TESTS_COMMON_OPTIM_PLAIN_OPTIMIZER_H_
