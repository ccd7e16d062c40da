// Which checkpoints there are, and which parts of the next ones the shards have written. Pure.
#ifndef TANDEM_COORDINATOR_CHECKPOINT_BOOK_H_
#define TANDEM_COORDINATOR_CHECKPOINT_BOOK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/state.pb.h"

namespace tandem {

// Not thread-safe.
class CheckpointBook {
 public:
  struct Entry {
    uint64_t step = 0;
    std::string name;
  };

  // `good`: what the state directory holds, oldest first; `map` that stands, if one does; `keep` as
  // CommitCheckpoint's.
  CheckpointBook(std::vector<Entry> good, const v1::ClusterMap& map, uint32_t keep);

  // The newest that is not known to be bad; null: none.
  const Entry* newest() const { return good_.empty() ? nullptr : &good_.back(); }
  void MarkBad(const std::string& name);

  // A new map stands. One that begins a history: parts of the last history are forgotten.
  void SetMap(const v1::ClusterMap& map);

  // What shard `shard` says to have written. When it completes a checkpoint: its step and files,
  // for CommitCheckpoint; each checkpoint is complete once. What belongs to another history, or is
  // known, is ignored.
  std::optional<v1::Manifest> Add(uint32_t shard, const v1::SavedShard& saved);
  void Committed(uint64_t step);
  void Failed(uint64_t step);

  // Nothing more will come of the checkpoint of `step`: it stands, or it failed.
  bool Settled(uint64_t step) const;
  // Why the checkpoint of a step failed, of the last one that did; empty: none did.
  const std::string& trouble() const { return trouble_; }
  uint64_t written() const { return written_; }
  uint64_t failed() const { return failures_; }

 private:
  std::optional<v1::ManifestFile> FileOf(uint32_t shard, const v1::SavedShard& saved) const;

  std::vector<Entry> good_;  // By step.
  uint32_t keep_;
  v1::ClusterMap map_;
  uint64_t committed_ = 0;  // The last step of this history whose checkpoint stands.
  std::map<uint64_t, std::map<uint32_t, v1::ManifestFile>> parts_;  // By step and shard.
  std::set<uint64_t> failed_;                                       // Steps, of this history.
  std::string trouble_;
  uint64_t written_ = 0, failures_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_CHECKPOINT_BOOK_H_
