#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/autodiff/ops.h"
#include "common/autodiff/tape.h"
#include "common/base/status_macros.h"
#include "common/nn/model_impl.h"

namespace tandem {
namespace {

class CpuReplica final : public Replica {
 public:
  explicit CpuReplica(const ModelImpl* model)
      : plan_(model->plan()), variables_(plan_.variables.size()) {}

  absl::Status ComputeGradient(const Batch& batch, const float* weights, float scale,
                               float* gradient, v1::Sums* sums) override {
    TANDEM_RETURN_IF_ERROR(Check(batch));
    tape_.Begin(Tape::Mode::kRecord);
    AddUp(batch, Forward(batch, weights, gradient), scale, sums);
    if (sums->skipped() > 0) {
      return absl::FailedPreconditionError(absl::StrCat("the loss or a metric of ", sums->skipped(),
                                                        " of its examples is not finite"));
    }
    const Var not_finite = tape_.Backward();
    if (not_finite.id < 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the gradient of ", NameOf(not_finite), " is not finite"));
  }

  absl::Status Evaluate(const Batch& batch, const float* weights, v1::Sums* sums) override {
    TANDEM_RETURN_IF_ERROR(Check(batch));
    tape_.Begin(Tape::Mode::kForwardOnly);
    AddUp(batch, Forward(batch, weights, nullptr), 1, sums);
    return absl::OkStatus();
  }

 private:
  absl::Status Check(const Batch& batch) const {
    if (batch.size == 0 || batch.labels.size() != batch.size ||
        batch.features.size() != batch.size * plan_.example_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a batch of ", batch.size, " examples has ", batch.labels.size(), " labels and ",
          batch.features.size(), " features; expected at least 1 example, each with a label and ",
          plan_.example_size, " features"));
    }
    return CheckLabelsOfBatch(plan_.loss, batch.labels);
  }

  Var Forward(const Batch& batch, const float* weights, float* gradient) {
    for (size_t i = 0; i < variables_.size(); ++i) {
      const PlannedVariable& variable = plan_.planned_variables[i];
      variables_[i] = tape_.Parameter(weights + variable.offset,
                                      gradient == nullptr ? nullptr : gradient + variable.offset,
                                      variable.size);
    }
    Var x = tape_.Constant(batch.features.data(), batch.features.size());
    for (const PlannedLayer& layer : plan_.layers) {
      const size_t rows = batch.size * layer.rows;
      x = layer.kernel < 0
              ? Activate(&tape_, layer.activation, rows, layer.columns, x)
              : Dense(&tape_, {rows, layer.inputs, layer.columns}, layer.activation, x,
                      variables_[layer.kernel], layer.bias < 0 ? Var() : variables_[layer.bias]);
    }
    return x;
  }

  // The loss and the metrics of the outputs, and the derivative of the loss, where it is needed,
  // for Backward to start from.
  void AddUp(const Batch& batch, Var output, float scale, v1::Sums* sums) {
    LossArrays arrays;
    arrays.outputs = tape_.value(output);
    arrays.labels = batch.labels.data();
    arrays.losses = tape_.Scratch(batch.size);
    arrays.derivative = tape_.SeedGradient(output);
    arrays.predictions = tape_.Scratch(batch.size * plan_.loss.outputs);
    ComputeLoss(plan_.loss, batch.size, scale, arrays);
    const size_t metrics = plan_.metrics.size();
    sums->Clear();
    sums->mutable_metrics()->Resize(static_cast<int>(metrics), 0);
    metrics_.resize(metrics);
    for (size_t i = 0; i < batch.size; ++i) {
      bool finite = std::isfinite(arrays.losses[i]);
      for (size_t m = 0; m < metrics; ++m) {
        metrics_[m] = MetricOf(plan_.metrics[m], plan_.loss.outputs,
                               arrays.predictions + i * plan_.loss.outputs, arrays.labels[i]);
        finite = finite && std::isfinite(metrics_[m]);
      }
      if (!finite) {
        sums->set_skipped(sums->skipped() + 1);
        continue;
      }
      sums->set_examples(sums->examples() + 1);
      sums->set_loss(sums->loss() + arrays.losses[i]);
      for (size_t m = 0; m < metrics; ++m) {
        double* sum = sums->mutable_metrics()->Mutable(static_cast<int>(m));
        *sum += metrics_[m];
      }
    }
  }

  const std::string& NameOf(Var parameter) const {
    size_t i = 0;
    while (variables_[i].id != parameter.id) ++i;
    return plan_.variables[i].name();
  }

  const Plan& plan_;
  Tape tape_;
  std::vector<Var> variables_;   // On the tape, as in the plan.
  std::vector<double> metrics_;  // Of one example.
};

}  // namespace

std::unique_ptr<Replica> Replica::Create(const Model* model) {
  // Model::Create is the only source of models.
  return std::make_unique<CpuReplica>(static_cast<const ModelImpl*>(model));
}

}  // namespace tandem
