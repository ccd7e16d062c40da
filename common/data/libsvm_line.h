// One line of LibSVM text: `label index:value index:value ... # comment`.
#ifndef TANDEM_COMMON_DATA_LIBSVM_LINE_H_
#define TANDEM_COMMON_DATA_LIBSVM_LINE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// What the numbers of a line may be.
struct LibSvmLimits {
  uint32_t num_features = 0;
  uint32_t index_base = 1;  // Indices are index_base to index_base + num_features - 1.
};

// A sparse example: what is not named is 0. Reused from line to line.
struct LibSvmRow {
  float label = 0;
  std::vector<uint32_t> columns;  // Counted from 0, each once, in the order of the line.
  std::vector<float> values;      // As many.
};

// Parses `line` (without its end) into *row; false for one that is blank but for a comment.
// INVALID_ARGUMENT with the offending word and what was expected; the caller adds the place.
absl::StatusOr<bool> ParseLibSvmLine(absl::string_view line, const LibSvmLimits& limits,
                                     LibSvmRow* row);

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_LIBSVM_LINE_H_
