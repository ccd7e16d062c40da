// One file of the IDX format (idx.h): its header, and a pass over its data.
#ifndef TANDEM_COMMON_DATA_IDX_FILE_H_
#define TANDEM_COMMON_DATA_IDX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tandem {

struct IdxHeader {
  std::string path;
  std::vector<uint64_t> dimensions;  // At least one, none is 0.
  uint64_t header_bytes = 0;
  uint64_t data_bytes = 0;  // As declared: the product of the dimensions.

  bool is_labels() const { return dimensions.size() == 1; }
  uint64_t count() const { return dimensions[0]; }
  std::vector<uint64_t> example_shape() const { return {dimensions.begin() + 1, dimensions.end()}; }
};

// Dimensions as messages show them: `60000 x 28 x 28`.
std::string ShapeText(absl::Span<const uint64_t> dimensions);

// Reads and checks the header of the file at `path`.
absl::StatusOr<IdxHeader> ReadIdxHeader(const std::string& path);

// Gives all data of the file to `consume`, block by block, in O(1) memory. INVALID_ARGUMENT unless
// it is exactly as long as `header` declares; nothing past that length is given.
absl::Status ReadIdxData(const IdxHeader& header,
                         absl::FunctionRef<void(absl::Span<const uint8_t>)> consume);

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_IDX_FILE_H_
