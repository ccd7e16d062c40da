#include "common/nn/plan.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/nn/activation_name.h"

namespace tandem {
namespace {

absl::Status FieldError(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// a * b, or more than kMaxElements when the product is.
uint64_t Product(uint64_t a, uint64_t b) {
  if (a != 0 && b > kMaxElements / a) return kMaxElements + 1;
  return a * b;
}

uint64_t Product(absl::Span<const uint64_t> shape) {
  uint64_t product = 1;
  for (uint64_t size : shape) product = Product(product, size);
  return product;
}

// Builds a plan layer by layer.
class Planner {
 public:
  Planner(const v1::JobSpec& job, absl::Span<const uint64_t> example_shape)
      : job_(job), shape_(example_shape.begin(), example_shape.end()) {}

  absl::StatusOr<Plan> Run() {
    plan_.example_size = Product(shape_);
    if (plan_.example_size == 0 || plan_.example_size > kMaxElements) {
      return FieldError("dataset",
                        absl::StrCat("examples have the shape [", absl::StrJoin(shape_, ", "),
                                     "]; expected from 1 to ", kMaxElements, " elements"));
    }
    for (int i = 0; i < job_.model().layers_size(); ++i) {
      TANDEM_RETURN_IF_ERROR(AddLayer(i));
    }
    if (plan_.variables.empty()) {
      return FieldError("model.layers", "nothing to train; expected at least one dense layer");
    }
    return Finish();
  }

 private:
  absl::Status AddLayer(int number) {
    const v1::Layer& layer = job_.model().layers(number);
    field_ = absl::StrCat("model.layers[", number, "]");
    TANDEM_RETURN_IF_ERROR(NameLayer(layer));
    switch (layer.kind_case()) {
      case v1::Layer::kFlatten:
        shape_ = {Product(shape_)};
        last_ = -1;
        return absl::OkStatus();
      case v1::Layer::kDense:
        return AddDense(layer.dense());
      case v1::Layer::kActivation:
        return AddActivation(layer.activation());
      case v1::Layer::KIND_NOT_SET:
        break;
    }
    return FieldError(field_, "has no kind; expected one of flatten, dense, activation");
  }

  // An unnamed layer takes its kind's name and a count of those, as Keras does.
  absl::Status NameLayer(const v1::Layer& layer) {
    name_ = layer.name();
    if (name_.empty() && layer.kind_case() != v1::Layer::KIND_NOT_SET) {
      const char* const kind = layer.has_flatten() ? "flatten"
                               : layer.has_dense() ? "dense"
                                                   : "activation";
      const int count = unnamed_[kind]++;
      name_ = count == 0 ? kind : absl::StrCat(kind, "_", count);
    }
    if (name_.find('/') != std::string::npos) {
      return FieldError(field_ + ".name", absl::StrCat("is \"", name_, "\"; expected no \"/\""));
    }
    const auto [first, inserted] = names_.emplace(name_, field_);
    if (inserted) return absl::OkStatus();
    return FieldError(field_ + ".name", absl::StrCat("\"", name_, "\" is the name of ",
                                                     first->second, " too; expected another"));
  }

  absl::Status AddDense(const v1::Dense& dense) {
    const std::string field = field_ + ".dense";
    if (dense.units() == 0) return FieldError(field + ".units", "is 0; expected at least 1");
    if (shape_.empty()) {
      return FieldError(field, "its input is a single number; expected a flatten layer before it");
    }
    PlannedLayer layer;
    layer.inputs = shape_.back();
    layer.columns = dense.units();
    shape_.pop_back();
    layer.rows = Product(shape_);
    shape_.push_back(layer.columns);
    const uint64_t parameters = Product(layer.inputs + 1, layer.columns);
    if (Product(shape_) > kMaxElements || parameters + plan_.num_elements > kMaxElements) {
      return FieldError(
          field + ".units",
          absl::StrCat("is ", dense.units(), ", with ", layer.inputs,
                       " inputs; expected a model of at most ", kMaxElements, " elements in all"));
    }
    TANDEM_RETURN_IF_ERROR(ReadActivation(
        field, dense.activation().empty() ? "linear" : dense.activation(), &layer.activation));
    TANDEM_RETURN_IF_ERROR(AddKernelAndBias(field, dense, &layer));
    plan_.layers.push_back(layer);
    last_ = static_cast<int>(plan_.layers.size()) - 1;
    return absl::OkStatus();
  }

  absl::Status AddKernelAndBias(const std::string& field, const v1::Dense& dense,
                                PlannedLayer* layer) {
    v1::Initializer kernel = dense.kernel_initializer();
    if (kernel.kind_case() == v1::Initializer::KIND_NOT_SET) kernel.mutable_glorot_uniform();
    const auto inputs = static_cast<double>(layer->inputs);
    const auto units = static_cast<double>(layer->columns);
    TANDEM_ASSIGN_OR_RETURN(
        const Initializer kernel_values,
        ResolveInitializer(field + ".kernel_initializer", kernel, {inputs, units}));
    layer->kernel = AddVariable("kernel", {layer->inputs, layer->columns}, kernel_values);
    // Both fans of a vector are its length.
    TANDEM_ASSIGN_OR_RETURN(
        const Initializer bias_values,
        ResolveInitializer(field + ".bias_initializer", dense.bias_initializer(), {units, units}));
    if (dense.has_use_bias() && !dense.use_bias()) return absl::OkStatus();
    layer->bias = AddVariable("bias", {layer->columns}, bias_values);
    return absl::OkStatus();
  }

  absl::Status AddActivation(const v1::ActivationLayer& spec) {
    PlannedLayer layer;
    TANDEM_RETURN_IF_ERROR(
        ReadActivation(field_ + ".activation", spec.activation(), &layer.activation));
    // The layer before it stays the last one: Keras sees through a linear activation.
    if (layer.activation == Activation::kLinear) return absl::OkStatus();
    const uint64_t size = Product(shape_);
    layer.columns = shape_.empty() ? 1 : shape_.back();
    layer.rows = size / layer.columns;
    plan_.layers.push_back(layer);
    last_ = static_cast<int>(plan_.layers.size()) - 1;
    return absl::OkStatus();
  }

  static absl::Status ReadActivation(const std::string& field, const std::string& name,
                                     Activation* activation) {
    TANDEM_ASSIGN_OR_RETURN(*activation, ActivationOfName(field + ".activation", name));
    return absl::OkStatus();
  }

  int AddVariable(absl::string_view name, absl::Span<const uint64_t> shape,
                  const Initializer& initializer) {
    v1::Variable variable;
    variable.set_name(absl::StrCat(name_, "/", name));
    for (uint64_t size : shape) variable.add_shape(size);
    plan_.variables.push_back(std::move(variable));
    plan_.planned_variables.push_back({plan_.num_elements, Product(shape), initializer});
    plan_.num_elements += Product(shape);
    return static_cast<int>(plan_.variables.size()) - 1;
  }

  absl::StatusOr<Plan> Finish() {
    PlannedLayer* last = last_ < 0 ? nullptr : &plan_.layers[last_];
    TANDEM_ASSIGN_OR_RETURN(
        plan_.loss,
        ResolveLoss(job_.loss(), shape_, last == nullptr ? Activation::kLinear : last->activation));
    if (plan_.loss.to_predictions != Activation::kLinear) last->activation = Activation::kLinear;
    TANDEM_ASSIGN_OR_RETURN(plan_.metrics, ResolveMetrics(job_, plan_.loss.outputs));
    return std::move(plan_);
  }

  const v1::JobSpec& job_;
  Plan plan_;
  std::vector<uint64_t> shape_;  // Of the last layer's output, without the batch axis.
  std::string field_, name_;     // Of the layer in hand.
  int last_ = -1;  // The layer whose activation the model ends with; -1 after a flatten.
  absl::flat_hash_map<std::string, int> unnamed_;        // By kind.
  absl::flat_hash_map<std::string, std::string> names_;  // To the field of the layer.
};

}  // namespace

absl::StatusOr<Plan> PlanModel(const v1::JobSpec& job, absl::Span<const uint64_t> example_shape) {
  if (job.model().layers_size() == 0) {
    return FieldError("model.layers", "is empty; expected at least 1 layer");
  }
  return Planner(job, example_shape).Run();
}

}  // namespace tandem
