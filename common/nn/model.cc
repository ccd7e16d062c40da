#include "common/nn/model.h"

#include <string>
#include <utility>

#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "common/nn/model_impl.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<const Model>> Model::Create(
    const v1::JobSpec& job, absl::Span<const uint64_t> example_shape) {
  TANDEM_ASSIGN_OR_RETURN(Plan plan, PlanModel(job, example_shape));
  return std::unique_ptr<const Model>(std::make_unique<ModelImpl>(std::move(plan)));
}

void ModelImpl::Initialize(uint64_t seed, int variable, uint64_t begin, uint64_t end,
                           float* out) const {
  Draw(plan_.planned_variables[variable].initializer, seed,
       Hash64(plan_.variables[variable].name()), begin, end, out);
}

absl::Status ModelImpl::CheckLabels(float min_label, float max_label) const {
  return CheckLabelRange(plan_.loss, min_label, max_label);
}

std::vector<std::string> MetricNames(const v1::JobSpec& job) {
  std::vector<std::string> names;
  for (const v1::Metric& metric : job.metrics()) names.emplace_back(MetricName(metric));
  return names;
}

}  // namespace tandem
