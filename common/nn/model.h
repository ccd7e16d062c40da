// A model as its JobSpec describes it: layers with their shapes, and the variables they own.
#ifndef TANDEM_COMMON_NN_MODEL_H_
#define TANDEM_COMMON_NN_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/data/dataset.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace tandem {

// Immutable after creation, hence thread-safe.
class Model {
 public:
  // Infers every shape from `example_shape`. INVALID_ARGUMENT names the field
  // (`model.layers[2].dense.units`) and what was expected. `job.loss` and `job.metrics` are checked
  // against the model's output too.
  static absl::StatusOr<std::unique_ptr<const Model>> Create(
      const v1::JobSpec& job, absl::Span<const uint64_t> example_shape);
  virtual ~Model() = default;

  // In the order of the layers, kernel before bias.
  virtual const std::vector<v1::Variable>& variables() const = 0;
  // Elements of all variables laid end to end, in that order: the length of the flat weights.
  virtual uint64_t num_elements() const = 0;
  // Initial values of elements [begin, end) of variable number `variable`, into out[0..end-begin).
  // A function of (seed, the variable's name, element) alone.
  virtual void Initialize(uint64_t seed, int variable, uint64_t begin, uint64_t end,
                          float* out) const = 0;
  // Checks labels against the loss: class numbers must be whole, and below the number of classes.
  virtual absl::Status CheckLabels(float min_label, float max_label) const = 0;
  // As in JobSpec.metrics.
  virtual int num_metrics() const = 0;
};

// Names of the metrics in summaries, Keras's own: "accuracy", "mean_squared_error".
std::vector<std::string> MetricNames(const v1::JobSpec& job);

// Computes micro-batches of one model on one device. Owns its scratch memory, which it reuses.
// Not thread-safe: one Replica a thread.
class Replica {
 public:
  // `model` must outlive it.
  static std::unique_ptr<Replica> Create(const Model* model);
  virtual ~Replica() = default;

  // gradient[0..num_elements) = scale * sum over the examples of d loss / d weights (written, not
  // added to); *sums = the examples' sums. `weights` has num_elements. batch.size at least 1.
  // The same arguments give the same bits on the same instruction set.
  // FAILED_PRECONDITION, and only then: the loss, a metric or a gradient is not finite; names it.
  virtual absl::Status ComputeGradient(const Batch& batch, const float* weights, float scale,
                                       float* gradient, v1::Sums* sums) = 0;
  // *sums = loss and metrics of the examples for which they are finite; the others are `skipped`.
  virtual absl::Status Evaluate(const Batch& batch, const float* weights, v1::Sums* sums) = 0;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_MODEL_H_
