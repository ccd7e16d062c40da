#include "common/checkpoint/shard_file.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/fault_point.h"
#include "common/base/hash.h"
#include "common/base/one_line.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/safetensors.h"

namespace tandem {
namespace {

constexpr size_t kChunkBytes = size_t{4} << 20;
constexpr char kState[] = "state";
constexpr char kFormat[] = "format";
constexpr char kFormatName[] = "tandem";

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

std::map<std::string, TensorBytes> Layout(const std::vector<v1::Block>& blocks, int slots) {
  std::map<std::string, TensorBytes> layout;
  uint64_t at = 0;
  for (int slot = -1; slot < slots; ++slot) {
    for (const v1::Block& block : blocks) {
      const uint64_t bytes = (block.end() - block.begin()) * sizeof(float);
      layout[TensorName(block, slot)] = {at, at + bytes};
      at += bytes;
    }
  }
  return layout;
}

// Writes and hashes.
class HashedFile {
 public:
  explicit HashedFile(WritableFile* file) : file_(file) {}

  absl::Status Append(const void* data, size_t size) {
    const char* from = static_cast<const char*>(data);
    for (size_t at = 0; at < size; at += kChunkBytes) {  // In the cache for both.
      const size_t bytes = std::min(kChunkBytes, size - at);
      hasher_.Add(from + at, bytes);
      TANDEM_RETURN_IF_ERROR(file_->Append(from + at, bytes));
    }
    bytes_ += size;
    return absl::OkStatus();
  }

  uint64_t bytes() const { return bytes_; }
  std::string Hash() const { return hasher_.Finish(); }

 private:
  WritableFile* file_;
  Hasher128 hasher_;
  uint64_t bytes_ = 0;
};

// A TensorPart by its place in the file.
struct Extent {
  uint64_t begin = 0, end = 0;  // Bytes of the file.
  char* to = nullptr;
};

// `parts` are of tensors that are there.
std::vector<Extent> Extents(const SafetensorsHeader& header, const std::vector<TensorPart>& parts) {
  std::vector<Extent> extents;
  for (const TensorPart& part : parts) {
    const TensorBytes& tensor = header.tensors.at(part.tensor);
    const uint64_t begin = header.bytes + tensor.begin + part.first * sizeof(float);
    extents.push_back(
        {begin, begin + part.count * sizeof(float), reinterpret_cast<char*>(part.to)});
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  return extents;
}

// The tensors that the manifest says are there, and no others.
absl::Status CheckTensors(const SafetensorsHeader& header, const v1::ManifestFile& entry,
                          uint32_t slots) {
  const std::vector<v1::Block> blocks(entry.blocks().begin(), entry.blocks().end());
  const auto expected = Layout(blocks, static_cast<int>(slots));
  for (const auto& [name, bytes] : expected) {
    auto it = header.tensors.find(name);
    if (it == header.tensors.end()) {
      return absl::DataLossError(absl::StrCat("tensor \"", name, "\" is missing"));
    }
    if (it->second.end - it->second.begin != bytes.end - bytes.begin) {
      return absl::DataLossError(absl::StrCat("tensor \"", name, "\" has another length"));
    }
  }
  if (header.tensors.size() == expected.size()) return absl::OkStatus();
  return absl::DataLossError("there are tensors that the manifest does not name");
}

absl::StatusOr<v1::ShardState> ReadState(const SafetensorsHeader& header) {
  auto it = header.metadata.find(kState);
  if (it == header.metadata.end()) return absl::DataLossError("has no state");
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  v1::ShardState state;
  const auto status = google::protobuf::util::JsonStringToMessage(it->second, &state, options);
  if (status.ok()) return state;
  return absl::DataLossError(absl::StrCat("state: ", OneLine(std::string(status.message()))));
}

// Copies what of `extents` lies in the bytes at `offset`; *next is the first that may.
void CopyOut(const char* bytes, uint64_t offset, size_t size, const std::vector<Extent>& extents,
             size_t* next) {
  const uint64_t end = offset + size;
  while (*next < extents.size() && extents[*next].end <= offset) ++*next;
  for (size_t i = *next; i < extents.size() && extents[i].begin < end; ++i) {
    const uint64_t from = std::max(offset, extents[i].begin), to = std::min(end, extents[i].end);
    if (from >= to) continue;
    std::memcpy(extents[i].to + (from - extents[i].begin), bytes + (from - offset), to - from);
  }
}

// Reads everything once: the hash, and the extents.
absl::StatusOr<std::string> ReadAll(const ReadableFile& file, const std::vector<Extent>& extents) {
  Hasher128 hasher;
  const auto chunk = std::make_unique<char[]>(kChunkBytes);
  size_t next = 0;
  for (uint64_t at = 0; at < file.size(); at += kChunkBytes) {
    const size_t bytes = std::min<uint64_t>(kChunkBytes, file.size() - at);
    TANDEM_RETURN_IF_ERROR(file.Read(at, bytes, chunk.get()));
    hasher.Add(chunk.get(), bytes);
    CopyOut(chunk.get(), at, bytes, extents, &next);
  }
  return hasher.Finish();
}

}  // namespace

std::string TensorName(const v1::Block& block, int slot) {
  const std::string name =
      absl::StrCat(block.variable(), "[", block.begin(), ":", block.end(), "]");
  return slot < 0 ? name : absl::StrCat(name, ":slot", slot);
}

absl::StatusOr<v1::ManifestFile> WriteShardFile(FileSystem* files, const std::string& path,
                                                const ShardTensors& tensors) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string state;
  // Fails only for messages that are not known, of which there are none.
  (void)google::protobuf::util::MessageToJsonString(tensors.state, &state, options);
  const std::string header =
      EncodeSafetensorsHeader(Layout(tensors.blocks, static_cast<int>(tensors.slots.size())),
                              {{kFormat, kFormatName}, {kState, state}});
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files->Create(path));
  HashedFile out(file.get());
  TANDEM_RETURN_IF_ERROR(out.Append(header.data(), header.size()));
  TANDEM_RETURN_IF_ERROR(FaultPoint("checkpoint_mid_write"));
  TANDEM_RETURN_IF_ERROR(out.Append(tensors.weights->data(), tensors.weights->bytes()));
  for (const auto& slot : tensors.slots) {
    TANDEM_RETURN_IF_ERROR(out.Append(slot->data(), slot->bytes()));
  }
  TANDEM_RETURN_IF_ERROR(file->Sync());
  v1::ManifestFile written;
  written.set_bytes(out.bytes());
  written.set_checksum(absl::BytesToHexString(out.Hash()));
  for (const v1::Block& block : tensors.blocks) *written.add_blocks() = block;
  return written;
}

absl::StatusOr<v1::ShardState> ReadShardFile(FileSystem* files, const std::string& path,
                                             const v1::ManifestFile& entry, uint32_t slots,
                                             const std::vector<TensorPart>& parts) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files->Open(path));
  if (file->size() != entry.bytes()) {
    return Damaged(path,
                   absl::StrCat("has ", file->size(), " bytes; the manifest says ", entry.bytes()));
  }
  const absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(*file);
  if (!header.ok()) return Damaged(path, header.status().message());
  if (const absl::Status status = CheckTensors(*header, entry, slots); !status.ok()) {
    return Damaged(path, status.message());
  }
  absl::StatusOr<v1::ShardState> state = ReadState(*header);
  if (!state.ok()) return Damaged(path, state.status().message());
  TANDEM_ASSIGN_OR_RETURN(const std::string hash, ReadAll(*file, Extents(*header, parts)));
  if (const std::string hex = absl::BytesToHexString(hash); hex != entry.checksum()) {
    return Damaged(path, absl::StrCat("is damaged: its checksum is ", hex,
                                      ", and the manifest says ", entry.checksum()));
  }
  return state;
}

}  // namespace tandem
