// Initial values of variables: each element is a function of (seed, variable, element number), so a
// server can draw the block it holds without drawing the rest.
#ifndef TANDEM_COMMON_NN_INITIALIZER_H_
#define TANDEM_COMMON_NN_INITIALIZER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace tandem {

struct Initializer {
  enum class Distribution { kConstant, kUniform, kNormal, kTruncatedNormal };
  Distribution distribution = Distribution::kConstant;
  // kConstant: the value. kUniform: the bounds. Normal: mean and standard deviation; the truncated
  // one is cut at two standard deviations, then scaled so that `b` is that of what is left.
  double a = 0, b = 0;
};

// What the initializers of Keras depend on: the shape's inputs and outputs.
struct Fans {
  double in, out;
};

// `spec` without a kind is the zeros initializer. INVALID_ARGUMENT names the field, which begins
// with `field`.
absl::StatusOr<Initializer> ResolveInitializer(absl::string_view field, const v1::Initializer& spec,
                                               const Fans& fans);

// Elements [begin, end) of the variable whose name has the hash `variable`.
void Draw(const Initializer& initializer, uint64_t seed, uint64_t variable, uint64_t begin,
          uint64_t end, float* out);

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_INITIALIZER_H_
