// The safetensors format (github.com/huggingface/safetensors): 8 bytes with the header's length,
// little-endian; the header, a JSON object of tensors; their bytes. Only float32 here.
#ifndef TANDEM_COMMON_CHECKPOINT_SAFETENSORS_H_
#define TANDEM_COMMON_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/file_system.h"

namespace tandem {

// Where a tensor's bytes are, counted from the first byte after the header.
struct TensorBytes {
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorBytes> tensors;
  std::map<std::string, std::string> metadata;
  uint64_t bytes = 0;  // Of the header with its length: where the tensors begin in the file.
};

// The length and the header, padded with spaces so that the tensors begin at a multiple of 64.
// Every tensor is a vector of float32.
std::string EncodeSafetensorsHeader(const std::map<std::string, TensorBytes>& tensors,
                                    const std::map<std::string, std::string>& metadata);

// `header` is the JSON alone, `data_bytes` what follows it in the file. DATA_LOSS says what is
// wrong: not JSON, another element type than F32, a shape that is not the length, bytes that belong
// to no tensor or to two.
absl::StatusOr<SafetensorsHeader> DecodeSafetensorsHeader(absl::string_view header,
                                                          uint64_t data_bytes);

// The same for an open file. Errors do not name it.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ReadableFile& file);

}  // namespace tandem

#endif  // TANDEM_COMMON_CHECKPOINT_SAFETENSORS_H_
