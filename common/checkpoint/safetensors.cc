#include "common/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 64;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // As the safetensors library's own.
constexpr char kMetadata[] = "__metadata__";

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("safetensors header: ", what));
}

absl::Status Damaged(const std::string& tensor, absl::string_view what) {
  return Damaged(absl::StrCat("tensor \"", tensor, "\": ", what));
}

// A list of at most `most` whole numbers.
bool ReadNumbers(const Json& list, size_t most, std::vector<uint64_t>* numbers) {
  if (!list.is_array() || list.size() > most) return false;
  for (const Json& number : list) {
    if (!number.is_number_unsigned()) return false;
    numbers->push_back(number.get<uint64_t>());
  }
  return true;
}

absl::StatusOr<TensorBytes> ReadTensor(const std::string& name, const Json& entry) {
  if (!entry.is_object() || !entry.contains("dtype") || entry["dtype"] != "F32") {
    return Damaged(name, "expected dtype F32");
  }
  std::vector<uint64_t> offsets, shape;
  if (!entry.contains("data_offsets") || !ReadNumbers(entry["data_offsets"], 2, &offsets) ||
      offsets.size() != 2 || offsets[0] > offsets[1]) {
    return Damaged(name, "expected data_offsets [begin, end]");
  }
  if (!entry.contains("shape") || !ReadNumbers(entry["shape"], 64, &shape)) {
    return Damaged(name, "expected a shape");
  }
  uint64_t bytes = sizeof(float);
  for (uint64_t axis : shape) {
    if (axis != 0 && bytes > std::numeric_limits<uint64_t>::max() / axis) {
      return Damaged(name, "the shape is too large");
    }
    bytes *= axis;
  }
  if (bytes != offsets[1] - offsets[0]) {
    return Damaged(
        name, absl::StrCat("the shape needs ", bytes, " bytes and has ", offsets[1] - offsets[0]));
  }
  return TensorBytes{offsets[0], offsets[1]};
}

absl::Status ReadMetadata(const Json& entry, SafetensorsHeader* out) {
  if (!entry.is_object()) return Damaged("__metadata__: expected an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return Damaged("__metadata__: expected texts");
    out->metadata[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Every byte belongs to one tensor.
absl::Status CheckCovered(const SafetensorsHeader& header, uint64_t data_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, tensor] : header.tensors) ranges.emplace_back(tensor.begin, tensor.end);
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at)
      return Damaged(absl::StrCat("byte ", std::min(at, begin), " of the tensors ",
                                  "belongs to none or to two"));
    at = end;
  }
  if (at == data_bytes) return absl::OkStatus();
  return Damaged(absl::StrCat("the tensors need ", at, " bytes; the file has ", data_bytes));
}

}  // namespace

std::string EncodeSafetensorsHeader(const std::map<std::string, TensorBytes>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
  Json json = Json::object();
  json[kMetadata] = metadata;
  // In the order of their bytes, which is how a reader likes to see them.
  std::vector<const std::pair<const std::string, TensorBytes>*> sorted;
  for (const auto& entry : tensors) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->second.begin < b->second.begin; });
  for (const auto* entry : sorted) {
    const TensorBytes& tensor = entry->second;
    json[entry->first] = {{"dtype", "F32"},
                          {"shape", {(tensor.end - tensor.begin) / sizeof(float)}},
                          {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string header = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const size_t all = kLengthBytes + header.size();
  header.append((kAlignment - all % kAlignment) % kAlignment, ' ');
  const uint64_t length = header.size();  // Little-endian, as every processor here.
  std::string out(kLengthBytes, '\0');
  std::memcpy(out.data(), &length, kLengthBytes);
  return out + header;
}

absl::StatusOr<SafetensorsHeader> DecodeSafetensorsHeader(absl::string_view header,
                                                          uint64_t data_bytes) {
  const Json json = Json::parse(header.begin(), header.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Damaged("is no JSON object");
  SafetensorsHeader out;
  out.bytes = kLengthBytes + header.size();
  for (const auto& [name, entry] : json.items()) {
    if (name == kMetadata) {
      TANDEM_RETURN_IF_ERROR(ReadMetadata(entry, &out));
    } else {
      TANDEM_ASSIGN_OR_RETURN(const TensorBytes tensor, ReadTensor(name, entry));
      if (!out.tensors.emplace(name, tensor).second) return Damaged(name, "is there twice");
    }
  }
  TANDEM_RETURN_IF_ERROR(CheckCovered(out, data_bytes));
  return out;
}

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ReadableFile& file) {
  if (file.size() < kLengthBytes) return Damaged("the file is cut");
  uint64_t length;
  TANDEM_RETURN_IF_ERROR(file.Read(0, kLengthBytes, &length));
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    return Damaged(absl::StrCat("a length of ", length, " bytes in a file of ", file.size()));
  }
  std::string header(length, '\0');
  TANDEM_RETURN_IF_ERROR(file.Read(kLengthBytes, length, header.data()));
  return DecodeSafetensorsHeader(header, file.size() - kLengthBytes - length);
}

}  // namespace tandem
