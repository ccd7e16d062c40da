#include "coordinator/job_model.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "coordinator/job_checks.h"

namespace tandem {
namespace {

constexpr uint32_t kMaxUnits = 1u << 24;  // One row of such a kernel takes 64 MiB.

const std::vector<std::string>& Activations() {
  static const auto* const names = new std::vector<std::string>{
      "linear",     "relu",        "sigmoid",      "tanh", "softmax", "elu",
      "selu",       "softplus",    "softsign",     "silu", "swish",   "gelu",
      "leaky_relu", "exponential", "hard_sigmoid", "relu6"};
  return *names;
}

absl::Status FinishRandomUniform(const std::string& path, v1::RandomUniform* uniform) {
  if (!uniform->has_minval()) uniform->set_minval(-0.05f);
  if (!uniform->has_maxval()) uniform->set_maxval(0.05f);
  if (uniform->minval() <= uniform->maxval()) return absl::OkStatus();
  return Fault(path + ".minval", absl::StrCat("is ", uniform->minval(),
                                              "; expected at most maxval, ", uniform->maxval()));
}

absl::Status FinishRandomNormal(const std::string& path, v1::RandomNormal* normal) {
  if (!normal->has_mean()) normal->set_mean(0);
  if (!normal->has_stddev()) normal->set_stddev(0.05f);
  return CheckAtLeast(path + ".stddev", normal->stddev(), 0.0f);
}

absl::Status FinishInitializer(const std::string& path, v1::Initializer* initializer) {
  if (initializer->has_random_uniform()) {
    return FinishRandomUniform(path + ".random_uniform", initializer->mutable_random_uniform());
  }
  if (initializer->has_random_normal()) {
    return FinishRandomNormal(path + ".random_normal", initializer->mutable_random_normal());
  }
  return absl::OkStatus();
}

absl::Status FinishDense(const std::string& path, v1::Dense* dense) {
  TANDEM_RETURN_IF_ERROR(CheckRange(path + ".units", dense->units(), 1u, kMaxUnits));
  if (dense->activation().empty()) dense->set_activation("linear");
  TANDEM_RETURN_IF_ERROR(CheckKnown(path + ".activation", dense->activation(), Activations()));
  if (!dense->has_use_bias()) dense->set_use_bias(true);
  v1::Initializer* const kernel = dense->mutable_kernel_initializer();
  if (kernel->kind_case() == v1::Initializer::KIND_NOT_SET) kernel->mutable_glorot_uniform();
  TANDEM_RETURN_IF_ERROR(FinishInitializer(path + ".kernel_initializer", kernel));
  v1::Initializer* const bias = dense->mutable_bias_initializer();
  if (bias->kind_case() == v1::Initializer::KIND_NOT_SET) bias->mutable_zeros();
  return FinishInitializer(path + ".bias_initializer", bias);
}

absl::Status FinishActivation(const std::string& path, const v1::ActivationLayer& layer) {
  if (layer.activation().empty()) return Fault(path + ".activation", "is required");
  return CheckKnown(path + ".activation", layer.activation(), Activations());
}

absl::Status FinishLayer(const std::string& path, v1::Layer* layer) {
  TANDEM_RETURN_IF_ERROR(CheckChosen(path, *layer, "has no kind"));
  if (absl::string_view(layer->name()).find('/') != absl::string_view::npos) {
    return Fault(path + ".name", absl::StrCat("\"", layer->name(), "\" has a / in it, which parts ",
                                              "the layer's name from the variable's"));
  }
  switch (layer->kind_case()) {
    case v1::Layer::kDense:
      return FinishDense(path + ".dense", layer->mutable_dense());
    case v1::Layer::kActivation:
      return FinishActivation(path + ".activation", layer->activation());
    case v1::Layer::kFlatten:
    case v1::Layer::KIND_NOT_SET:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// The field's name of a layer's kind is Keras's name of the class in snake_case.
std::string Kind(const v1::Layer& layer) {
  return v1::Layer::descriptor()->FindFieldByNumber(layer.kind_case())->name();
}

// Keras counts the layers of a kind that have no name of their own: dense, dense_1, ...
absl::Status NameLayers(v1::Model* model) {
  absl::flat_hash_map<std::string, int> unnamed;  // Layers so far, by kind.
  absl::flat_hash_map<std::string, int> owner;    // The layer's index, by name.
  for (int i = 0; i < model->layers_size(); ++i) {
    v1::Layer* const layer = model->mutable_layers(i);
    if (layer->name().empty()) {
      const std::string kind = Kind(*layer);
      const int count = unnamed[kind]++;
      layer->set_name(count == 0 ? kind : absl::StrCat(kind, "_", count));
    }
    const auto [first, inserted] = owner.try_emplace(layer->name(), i);
    if (!inserted) {
      return Fault(absl::StrCat("model.layers[", i, "].name"),
                   absl::StrCat("\"", layer->name(), "\" is the name of model.layers[",
                                first->second, "] too"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FinishModel(v1::Model* model) {
  if (model->layers().empty()) return Fault("model.layers", "is required; expected at least 1");
  for (int i = 0; i < model->layers_size(); ++i) {
    TANDEM_RETURN_IF_ERROR(
        FinishLayer(absl::StrCat("model.layers[", i, "]"), model->mutable_layers(i)));
  }
  return NameLayers(model);
}

}  // namespace tandem
