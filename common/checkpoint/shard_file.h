// One shard's file of a checkpoint: its tensors and its state. docs/checkpoints.md has the bytes.
#ifndef TANDEM_COMMON_CHECKPOINT_SHARD_FILE_H_
#define TANDEM_COMMON_CHECKPOINT_SHARD_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/shard_tensors.h"
#include "proto/parameter_server.pb.h"
#include "proto/state.pb.h"

namespace tandem {

// Of a block's weights (`slot` -1) or its values in an optimizer slot: "dense/kernel[0:1024]",
// "dense/kernel[0:1024]:slot0".
std::string TensorName(const v1::Block& block, int slot);

// Writes and syncs a new file. Returns what the manifest says of it; its name is empty.
absl::StatusOr<v1::ManifestFile> WriteShardFile(FileSystem* files, const std::string& path,
                                                const ShardTensors& tensors);

// A part of a tensor, and where its values go.
struct TensorPart {
  std::string tensor;
  uint64_t first = 0, count = 0;  // Elements.
  float* to = nullptr;
};

// Reads all of a file, which must be what `entry` says, to the last bit, and hold its blocks with
// `slots` slots; copies `parts` out on the way. DATA_LOSS or NOT_FOUND names it and the reason;
// what was copied is then of no use.
absl::StatusOr<v1::ShardState> ReadShardFile(FileSystem* files, const std::string& path,
                                             const v1::ManifestFile& entry, uint32_t slots,
                                             const std::vector<TensorPart>& parts);

}  // namespace tandem

#endif  // TANDEM_COMMON_CHECKPOINT_SHARD_FILE_H_
