// Metrics as sums over examples; means are formed elsewhere, once.
#ifndef TANDEM_COMMON_NN_METRIC_H_
#define TANDEM_COMMON_NN_METRIC_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace tandem {

enum class Metric {
  kBinaryAccuracy,             // The label is (prediction > 0.5).
  kSparseCategoricalAccuracy,  // The label is the number of the largest prediction, the lowest of
                               // equals.
  kSquaredError,
};

// Keras's name, "accuracy" for both accuracies. Empty if no kind is set.
absl::string_view MetricName(const v1::Metric& spec);

// Keras resolves "accuracy" by the width of the predictions: binary for one output an example, and
// then the threshold acts on the raw prediction, even if it is a logit. INVALID_ARGUMENT names
// `metrics[i]`.
absl::StatusOr<std::vector<Metric>> ResolveMetrics(const v1::JobSpec& job, size_t outputs);

// Of one example, with `outputs` predictions.
double MetricOf(Metric metric, size_t outputs, const float* prediction, float label);

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_METRIC_H_
