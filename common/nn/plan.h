// What a JobSpec's model comes to: its variables, and the operations in order.
#ifndef TANDEM_COMMON_NN_PLAN_H_
#define TANDEM_COMMON_NN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/nn/initializer.h"
#include "common/nn/loss_function.h"
#include "common/nn/metric.h"
#include "common/tensor/activation.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace tandem {

// Elements of all variables together, and of one layer's output an example: 32 GiB of floats. Far
// more than a machine computes with, and far from where sizes overflow.
constexpr uint64_t kMaxElements = uint64_t{1} << 33;

struct PlannedVariable {
  uint64_t offset = 0, size = 0;  // In the flat weights.
  Initializer initializer;
};

// A layer that computes something. Flatten and linear activations do not.
struct PlannedLayer {
  Activation activation = Activation::kLinear;
  size_t rows = 1;     // An example; the layer works on each row alone.
  size_t columns = 0;  // Of the output.
  size_t inputs = 0;   // Columns of the input.
  int kernel = -1;     // Variable numbers. -1: no kernel, an activation alone.
  int bias = -1;
};

struct Plan {
  uint64_t example_size = 1;
  std::vector<v1::Variable> variables;
  std::vector<PlannedVariable> planned_variables;  // As `variables`.
  uint64_t num_elements = 0;
  std::vector<PlannedLayer> layers;
  LossFunction loss;
  std::vector<Metric> metrics;
};

// INVALID_ARGUMENT names the field.
absl::StatusOr<Plan> PlanModel(const v1::JobSpec& job, absl::Span<const uint64_t> example_shape);

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_PLAN_H_
