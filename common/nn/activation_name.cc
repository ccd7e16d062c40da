#include "common/nn/activation_name.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {
namespace {

constexpr std::pair<absl::string_view, Activation> kNames[] = {
    {"linear", Activation::kLinear},
    {"relu", Activation::kRelu},
    {"sigmoid", Activation::kSigmoid},
    {"tanh", Activation::kTanh},
    {"softmax", Activation::kSoftmax},
    {"elu", Activation::kElu},
    {"selu", Activation::kSelu},
    {"softplus", Activation::kSoftplus},
    {"softsign", Activation::kSoftsign},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"gelu", Activation::kGelu},
    {"leaky_relu", Activation::kLeakyRelu},
    {"exponential", Activation::kExponential},
    {"hard_sigmoid", Activation::kHardSigmoid},
    {"relu6", Activation::kRelu6},
};

}  // namespace

absl::StatusOr<Activation> ActivationOfName(absl::string_view field, absl::string_view name) {
  for (const auto& [known, activation] : kNames) {
    if (known == name) return activation;
  }
  const std::string names = absl::StrJoin(
      kNames, ", ", [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first); });
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": is \"", name, "\"; expected one of ", names));
}

}  // namespace tandem
