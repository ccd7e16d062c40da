// Checkpoints: folders below STATE_DIR/checkpoints, each with one safetensors file a shard and a
// manifest. docs/checkpoints.md has the bytes.
//
// Shards write their files into a folder aside (`AsideName`); when all are synced, the coordinator
// renames it to `CheckpointName` and writes the manifest, last. A folder without a manifest is no
// checkpoint. Everything here may block on the disk; functions are thread-safe.
#ifndef TANDEM_COMMON_CHECKPOINT_CHECKPOINT_H_
#define TANDEM_COMMON_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/shard_tensors.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/state.pb.h"

namespace tandem {

// "step-000000000400"; and "step-000000000400.h7.tmp", aside, in the history that began in map
// epoch 7.
std::string CheckpointName(uint64_t step);
std::string AsideName(uint64_t step, uint64_t began);

// Writes and syncs STATE_DIR/checkpoints/`aside`/shard-K-of-N.safetensors. A file of that name that
// is there is replaced. The result has no `error`; on an error nothing usable is left.
absl::StatusOr<v1::SavedShard> WriteShard(FileSystem* files, const std::string& state_dir,
                                          const std::string& aside, int shard, int shards,
                                          const ShardTensors& tensors);

// Makes a checkpoint of `aside`, whose files are all written: checks that they are there with their
// sizes, renames the folder, writes the manifest aside and renames it. A checkpoint of the same
// step that was there is replaced. Then removes the oldest checkpoints, all but `keep`, and what
// crashes have left; what cannot be removed is logged. Checkpoints of later steps, of a history
// that was given up, stay and do not count.
absl::Status CommitCheckpoint(FileSystem* files, const std::string& state_dir,
                              const std::string& aside, const v1::Manifest& manifest,
                              uint32_t keep);

struct CheckpointEntry {
  std::string name;
  v1::Manifest manifest;  // Valid when `status` is ok.
  absl::Status status;    // DATA_LOSS names the file and the reason when the manifest is no good,
                          // FAILED_PRECONDITION when it is of a newer format.
};
// All checkpoints, oldest first: folders that have a manifest, however bad it is. Reads the
// manifests only, and whether the files are there with their sizes. No folder: none.
absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(FileSystem* files,
                                                             const std::string& state_dir);

// Whether `manifest` is of the job's model: FAILED_PRECONDITION names the first variable that
// differs.
absl::Status CheckModel(const v1::Manifest& manifest, const std::vector<v1::Variable>& variables);

// Reads `blocks` of checkpoint `name`, from however many files they are in; every file that is
// needed is checked as a whole. DATA_LOSS or NOT_FOUND names the file and the reason. `state` is
// the whole checkpoint's, the same in every file but for duplicates_ignored, which is 0.
absl::StatusOr<ShardTensors> ReadShard(FileSystem* files, const std::string& state_dir,
                                       const std::string& name,
                                       const std::vector<v1::Block>& blocks);

// Reads everything in the checkpoint and checks it: sizes, checksums, tensors against the
// manifest, every element of every variable once. DATA_LOSS names the file and the reason.
absl::Status VerifyCheckpoint(FileSystem* files, const std::string& state_dir,
                              const std::string& name);

}  // namespace tandem

#endif  // TANDEM_COMMON_CHECKPOINT_CHECKPOINT_H_
