#include "common/checkpoint/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/one_line.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 60;  // Of a variable; its bytes can be counted.
constexpr uint32_t kMaxSlots = 64;

const std::string& Zeros() {
  static const auto* const zeros = new std::string(2 * kHash128Bytes, '0');
  return *zeros;
}

bool IsHash(const std::string& text) {
  return text.size() == Zeros().size() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

absl::Status CheckChecksum(const v1::Manifest& manifest, std::string text) {
  // The field is the last of its message: no earlier digits, for example of a name, are meant.
  const size_t at = IsHash(manifest.checksum()) ? text.rfind(manifest.checksum()) : text.npos;
  if (at == text.npos) return absl::DataLossError("has no checksum");
  text.replace(at, Zeros().size(), Zeros());
  const std::string hash = absl::BytesToHexString(Hash128(text.data(), text.size()));
  if (hash == manifest.checksum()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("is damaged: its checksum is ", hash, ", and it says ", manifest.checksum()));
}

absl::StatusOr<uint64_t> Elements(const v1::Variable& variable) {
  uint64_t elements = 1;
  for (uint64_t axis : variable.shape()) {
    if (axis == 0 || axis > kMaxElements / elements) {
      return absl::DataLossError(absl::StrCat("variable \"", variable.name(), "\": bad shape"));
    }
    elements *= axis;
  }
  return elements;
}

using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;

absl::Status CheckTiles(const std::string& variable, uint64_t elements, Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at || end <= begin || end > elements) break;
    at = end;
  }
  if (at == elements && ranges.back().second == elements) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("variable \"", variable, "\": element ", at, " of ",
                                          elements, " is in no file, or in two"));
}

// Every element of every variable is in one file.
absl::Status CheckBlocks(const v1::Manifest& manifest) {
  std::map<std::string, Ranges> ranges;
  for (const v1::Variable& variable : manifest.variables()) {
    if (variable.name().empty() || !ranges.emplace(variable.name(), Ranges()).second) {
      return absl::DataLossError(
          absl::StrCat("variable \"", variable.name(), "\" has no name, or is there twice"));
    }
  }
  for (const v1::ManifestFile& file : manifest.files()) {
    for (const v1::Block& block : file.blocks()) {
      auto it = ranges.find(block.variable());
      if (it == ranges.end()) {
        return absl::DataLossError(
            absl::StrCat(file.name(), ": \"", block.variable(), "\" is no variable"));
      }
      it->second.emplace_back(block.begin(), block.end());
    }
  }
  for (const v1::Variable& variable : manifest.variables()) {
    TANDEM_ASSIGN_OR_RETURN(const uint64_t elements, Elements(variable));
    TANDEM_RETURN_IF_ERROR(
        CheckTiles(variable.name(), elements, std::move(ranges[variable.name()])));
  }
  return absl::OkStatus();
}

absl::Status Check(const v1::Manifest& manifest) {
  if (manifest.files_size() == 0) return absl::DataLossError("names no files");
  if (manifest.slots() > kMaxSlots) return absl::DataLossError("has too many slots");
  for (int k = 0; k < manifest.files_size(); ++k) {
    const v1::ManifestFile& file = manifest.files(k);
    const std::string name = ShardFileName(k, manifest.files_size());
    if (file.name() != name || !IsHash(file.checksum())) {
      return absl::DataLossError(absl::StrCat("files[", k, "]: expected ", name,
                                              " and a checksum of ", Zeros().size(), " digits"));
    }
  }
  return CheckBlocks(manifest);
}

}  // namespace

std::string ShardFileName(int shard, int shards) {
  return absl::StrCat("shard-", shard, "-of-", shards, ".safetensors");
}

std::string EncodeManifest(v1::Manifest manifest) {
  manifest.set_format(kManifestFormat);
  manifest.set_checksum(Zeros());
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // Fails only for messages that are not known, of which there are none.
  (void)google::protobuf::util::MessageToJsonString(manifest, &text, options);
  const std::string hash = absl::BytesToHexString(Hash128(text.data(), text.size()));
  const size_t at = text.rfind(Zeros());
  if (at != text.npos) text.replace(at, Zeros().size(), hash);
  return text;
}

absl::StatusOr<v1::Manifest> DecodeManifest(const std::string& text) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // A newer writer may say more than this reader asks for.
  v1::Manifest manifest;
  if (const auto status = google::protobuf::util::JsonStringToMessage(text, &manifest, options);
      !status.ok()) {
    return absl::DataLossError(
        absl::StrCat("is damaged: ", OneLine(std::string(status.message()))));
  }
  if (manifest.format() > kManifestFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "has format ", manifest.format(), "; this version reads up to ", kManifestFormat));
  }
  if (manifest.format() == 0) return absl::DataLossError("is no manifest of a checkpoint");
  TANDEM_RETURN_IF_ERROR(CheckChecksum(manifest, text));
  TANDEM_RETURN_IF_ERROR(Check(manifest));
  return manifest;
}

}  // namespace tandem
