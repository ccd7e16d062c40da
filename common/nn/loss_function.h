// A job's loss on the outputs of its model.
#ifndef TANDEM_COMMON_NN_LOSS_FUNCTION_H_
#define TANDEM_COMMON_NN_LOSS_FUNCTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/activation.h"
#include "proto/job.pb.h"

namespace tandem {

struct LossFunction {
  enum class Kind { kSparseCategorical, kBinary, kSquaredError };
  Kind kind = Kind::kSquaredError;
  // The network's outputs are logits: the job says so, or its last layer is a softmax or a sigmoid
  // and the network ends before it (see ResolveLoss).
  bool from_logits = false;
  // What turns the network's outputs into the predictions that metrics see.
  Activation to_predictions = Activation::kLinear;
  float label_smoothing = 0;
  size_t outputs = 1;  // An example.
};

// Checks `spec` against the model's output shape, without the batch axis. `last` is the activation
// that the model ends with, kLinear if it does not end with one. Keras's rule, whichever of the two
// cross-entropies and of the two activations it is: a model that ends in a softmax or sigmoid is
// trained from what goes into it. Then `to_predictions` is `last`, and the caller leaves that
// activation out of the network.
absl::StatusOr<LossFunction> ResolveLoss(const v1::Loss& spec,
                                         absl::Span<const uint64_t> output_shape, Activation last);

// INVALID_ARGUMENT unless all labels in [min_label, max_label] are fine, as far as these two tell.
absl::Status CheckLabelRange(const LossFunction& loss, float min_label, float max_label);
// INVALID_ARGUMENT names the first example whose label would not be a valid index.
absl::Status CheckLabelsOfBatch(const LossFunction& loss, absl::Span<const float> labels);

struct LossArrays {
  const float* outputs;  // [examples, loss.outputs], of the network.
  const float* labels;   // [examples], checked.
  float* losses;         // [examples].
  float* derivative;     // As outputs: d loss / d outputs, times scale. May be null.
  float* predictions;    // As outputs.
};

// Fills `losses`, `derivative` and `predictions`.
void ComputeLoss(const LossFunction& loss, size_t examples, float scale, const LossArrays& arrays);

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_LOSS_FUNCTION_H_
