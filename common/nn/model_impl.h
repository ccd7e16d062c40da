// The model behind model.h, for model.cc and replica.cc.
#ifndef TANDEM_COMMON_NN_MODEL_IMPL_H_
#define TANDEM_COMMON_NN_MODEL_IMPL_H_

#include <utility>
#include <vector>

#include "common/nn/model.h"
#include "common/nn/plan.h"

namespace tandem {

class ModelImpl final : public Model {
 public:
  explicit ModelImpl(Plan plan) : plan_(std::move(plan)) {}

  const std::vector<v1::Variable>& variables() const override { return plan_.variables; }
  uint64_t num_elements() const override { return plan_.num_elements; }
  void Initialize(uint64_t seed, int variable, uint64_t begin, uint64_t end,
                  float* out) const override;
  absl::Status CheckLabels(float min_label, float max_label) const override;
  int num_metrics() const override { return static_cast<int>(plan_.metrics.size()); }

  const Plan& plan() const { return plan_; }

 private:
  const Plan plan_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_MODEL_IMPL_H_
