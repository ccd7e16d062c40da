// Checks of single fields; an error begins with the field's path and says what was expected.
#ifndef TANDEM_COORDINATOR_JOB_CHECKS_H_
#define TANDEM_COORDINATOR_JOB_CHECKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/suggest.h"
#include "coordinator/job_fields.h"
#include "google/protobuf/message.h"

namespace tandem {

// `PATH: WHAT`.
inline absl::Status Fault(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// `training.replicas: is 0; expected at least 1`.
template <typename Number>
absl::Status CheckAtLeast(absl::string_view path, Number value, Number least) {
  if (value >= least) return absl::OkStatus();
  return Fault(path, absl::StrCat("is ", value, "; expected at least ", least));
}

template <typename Number>
absl::Status CheckRange(absl::string_view path, Number value, Number least, Number most) {
  if (value <= most) return CheckAtLeast(path, value, least);
  return Fault(path, absl::StrCat("is ", value, "; expected at most ", most));
}

// `model.layers[1].dense.activation: "rleu" is unknown; did you mean "relu"?`
inline absl::Status CheckKnown(absl::string_view path, absl::string_view name,
                               const std::vector<std::string>& known) {
  for (const std::string& candidate : known) {
    if (name == candidate) return absl::OkStatus();
  }
  return Fault(path, absl::StrCat("\"", name, "\" is unknown", DidYouMean(name, known)));
}

// Refuses a message whose first oneof is not set: `loss: is required; expected one of A, B`, where
// `fault` is "is required".
inline absl::Status CheckChosen(absl::string_view path, const google::protobuf::Message& message,
                                absl::string_view fault) {
  const auto& choice = *message.GetDescriptor()->oneof_decl(0);
  if (message.GetReflection()->HasOneof(message, &choice)) return absl::OkStatus();
  return Fault(path,
               absl::StrCat(fault, "; expected one of ", absl::StrJoin(FieldNames(choice), ", ")));
}

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_CHECKS_H_
