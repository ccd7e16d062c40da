// The names that job files give to activations: Keras's.
#ifndef TANDEM_COMMON_NN_ACTIVATION_NAME_H_
#define TANDEM_COMMON_NN_ACTIVATION_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/activation.h"

namespace tandem {

// INVALID_ARGUMENT starts with `field` and lists the names.
absl::StatusOr<Activation> ActivationOfName(absl::string_view field, absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_ACTIVATION_NAME_H_
