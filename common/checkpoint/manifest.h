// manifest.json of a checkpoint as text. docs/checkpoints.md has the bytes.
#ifndef TANDEM_COMMON_CHECKPOINT_MANIFEST_H_
#define TANDEM_COMMON_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/state.pb.h"

namespace tandem {

constexpr uint32_t kManifestFormat = 1;
constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;

// "shard-0-of-3.safetensors".
std::string ShardFileName(int shard, int shards);

// The JSON form. Sets format and checksum.
std::string EncodeManifest(v1::Manifest manifest);

// The inverse, and everything checked that the manifest can say of itself: its checksum; that the
// files are named ShardFileName; that their blocks are every element of every variable, once.
// DATA_LOSS says what is wrong, FAILED_PRECONDITION that the format is newer than kManifestFormat.
absl::StatusOr<v1::Manifest> DecodeManifest(const std::string& text);

}  // namespace tandem

#endif  // TANDEM_COMMON_CHECKPOINT_MANIFEST_H_
