#include "coordinator/checkpoint_book.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"

namespace tandem {
namespace {

// Steps of which some part may be missing at one time: bounds the memory.
constexpr size_t kMaxOpenSteps = 64;

}  // namespace

CheckpointBook::CheckpointBook(std::vector<Entry> good, const v1::ClusterMap& map, uint32_t keep)
    : good_(std::move(good)), keep_(std::max(keep, 1u)), map_(map), committed_(map.step()) {
  // A history begins from the newest that is good: what is newer was written in it.
  if (map.epoch() > 0 && !good_.empty()) committed_ = std::max(committed_, good_.back().step);
}

void CheckpointBook::MarkBad(const std::string& name) {
  good_.erase(std::remove_if(good_.begin(), good_.end(),
                             [&name](const Entry& entry) { return entry.name == name; }),
              good_.end());
}

void CheckpointBook::SetMap(const v1::ClusterMap& map) {
  const bool goes_on = map_.began() == map.began();
  map_ = map;
  if (goes_on) return;
  parts_.clear();
  failed_.clear();
  committed_ = map.step();
}

std::optional<v1::ManifestFile> CheckpointBook::FileOf(uint32_t shard,
                                                       const v1::SavedShard& saved) const {
  const int shards = map_.shards_size();
  const int k = static_cast<int>(shard);
  if (k >= shards || saved.file() != ShardFileName(k, shards) || saved.checksum().size() != 16) {
    return std::nullopt;
  }
  v1::ManifestFile file;
  file.set_name(saved.file());
  file.set_bytes(saved.bytes());
  file.set_checksum(absl::BytesToHexString(saved.checksum()));
  *file.mutable_blocks() = map_.shards(k).blocks();
  return file;
}

std::optional<v1::Manifest> CheckpointBook::Add(uint32_t shard, const v1::SavedShard& saved) {
  const uint64_t step = saved.step();
  if (step <= committed_ || failed_.count(step) > 0 ||
      saved.folder() != AsideName(step, map_.began())) {
    return std::nullopt;
  }
  if (!saved.error().empty()) {
    trouble_ = absl::StrCat("shard ", shard, ": ", saved.error());
    Failed(step);
    return std::nullopt;
  }
  std::optional<v1::ManifestFile> file = FileOf(shard, saved);
  if (!file.has_value()) return std::nullopt;
  auto& parts = parts_[step];
  const bool was_complete = parts.size() == static_cast<size_t>(map_.shards_size());
  // Whoever holds the shard wrote the file last: a standby that was promoted writes it anew.
  parts[shard] = *std::move(file);
  if (was_complete || parts.size() < static_cast<size_t>(map_.shards_size())) {
    if (parts_.size() > kMaxOpenSteps) parts_.erase(parts_.begin());
    return std::nullopt;
  }
  v1::Manifest manifest;
  manifest.set_step(step);
  for (const auto& [k, part] : parts) *manifest.add_files() = part;
  return manifest;
}

void CheckpointBook::Committed(uint64_t step) {
  committed_ = std::max(committed_, step);
  ++written_;
  parts_.erase(parts_.begin(), parts_.upper_bound(step));
  const std::string name = CheckpointName(step);
  MarkBad(name);  // The one that it replaced.
  good_.push_back({step, name});
  std::sort(good_.begin(), good_.end(),
            [](const Entry& a, const Entry& b) { return a.step < b.step; });
  // As the state directory is pruned: later ones are of a history that was given up.
  const auto end = std::upper_bound(good_.begin(), good_.end(), step,
                                    [](uint64_t s, const Entry& entry) { return s < entry.step; });
  const auto have = static_cast<size_t>(end - good_.begin());
  if (have > keep_) good_.erase(good_.begin(), end - keep_);
}

void CheckpointBook::Failed(uint64_t step) {
  if (!failed_.insert(step).second) return;
  ++failures_;
  parts_.erase(step);
}

bool CheckpointBook::Settled(uint64_t step) const {
  return step <= committed_ || failed_.count(step) > 0;
}

}  // namespace tandem
