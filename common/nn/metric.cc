#include "common/nn/metric.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

bool Right(Metric metric, size_t outputs, const float* prediction, float label) {
  if (metric == Metric::kBinaryAccuracy) return (*prediction > 0.5f ? 1.0f : 0.0f) == label;
  const float* largest = std::max_element(prediction, prediction + outputs);
  return static_cast<float>(largest - prediction) == label;
}

}  // namespace

absl::string_view MetricName(const v1::Metric& spec) {
  switch (spec.kind_case()) {
    case v1::Metric::kAccuracy:
      return "accuracy";
    case v1::Metric::kMeanSquaredError:
      return "mean_squared_error";
    case v1::Metric::KIND_NOT_SET:
      break;
  }
  return "";
}

absl::StatusOr<std::vector<Metric>> ResolveMetrics(const v1::JobSpec& job, size_t outputs) {
  std::vector<Metric> metrics;
  for (int i = 0; i < job.metrics_size(); ++i) {
    const auto error = [i](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("metrics[", i, "]: ", what));
    };
    const absl::string_view name = MetricName(job.metrics(i));
    for (int j = 0; j < i; ++j) {
      if (MetricName(job.metrics(j)) == name) return error(absl::StrCat(name, " is given twice"));
    }
    switch (job.metrics(i).kind_case()) {
      case v1::Metric::kAccuracy:
        metrics.push_back(outputs == 1 ? Metric::kBinaryAccuracy
                                       : Metric::kSparseCategoricalAccuracy);
        break;
      case v1::Metric::kMeanSquaredError:
        if (outputs != 1) {
          return error(absl::StrCat(
              "mean_squared_error needs 1 output an example, but the model has ", outputs));
        }
        metrics.push_back(Metric::kSquaredError);
        break;
      case v1::Metric::KIND_NOT_SET:
        return error("has no kind; expected one of accuracy, mean_squared_error");
    }
  }
  return metrics;
}

double MetricOf(Metric metric, size_t outputs, const float* prediction, float label) {
  if (metric == Metric::kSquaredError) {
    const float error = *prediction - label;
    return error * error;
  }
  return Right(metric, outputs, prediction, label) ? 1 : 0;
}

}  // namespace tandem
