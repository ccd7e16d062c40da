#include "coordinator/placement.h"

#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace tandem {
namespace {

// The position nearest to `target` at which a cut may be: a chunk's begin or end.
uint64_t NearestCut(const std::vector<v1::Variable>& variables, uint64_t target) {
  uint64_t begin = 0;
  for (const v1::Variable& variable : variables) {
    const uint64_t size = NumElements(variable);
    if (target < begin + size) {
      const uint64_t below = (target - begin) / kChunkElements * kChunkElements;
      const uint64_t above = std::min(below + kChunkElements, size);
      return begin + (target - begin - below <= above - (target - begin) ? below : above);
    }
    begin += size;
  }
  return begin;
}

void AppendNumber(uint64_t value, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>(value >> shift));
}

}  // namespace

uint64_t NumElements(const v1::Variable& variable) {
  uint64_t n = 1;
  for (uint64_t axis : variable.shape()) n *= axis;
  return n;
}

std::vector<std::vector<v1::Block>> PlaceBlocks(const std::vector<v1::Variable>& variables,
                                                int shards) {
  uint64_t total = 0;
  for (const v1::Variable& variable : variables) total += NumElements(variable);
  std::vector<std::vector<v1::Block>> blocks(static_cast<size_t>(shards));
  uint64_t cut = 0;
  for (uint64_t k = 0; k < static_cast<uint64_t>(shards); ++k) {
    const auto count = static_cast<uint64_t>(shards);
    const uint64_t target = total / count * (k + 1) + total % count * (k + 1) / count;
    const uint64_t next_cut = k + 1 == count ? total : NearestCut(variables, target);
    uint64_t begin = 0;
    for (const v1::Variable& variable : variables) {
      const uint64_t end = begin + NumElements(variable);
      const uint64_t from = std::max(begin, cut), to = std::min(end, next_cut);
      if (from < to) {
        v1::Block& block = blocks[k].emplace_back();
        block.set_variable(variable.name());
        block.set_begin(from - begin);
        block.set_end(to - begin);
      }
      begin = end;
    }
    cut = std::max(cut, next_cut);
  }
  return blocks;
}

absl::StatusOr<std::string> ParamsDigest(const v1::ClusterMap& map,
                                         const std::vector<std::string>& chunk_hashes) {
  std::map<std::string, std::string> by_name;  // In the order of names.
  for (const v1::Variable& variable : map.variables()) {
    std::string& text = by_name[variable.name()];
    text = variable.name() + '\0';
    AppendNumber(static_cast<uint64_t>(variable.shape_size()), &text);
    for (uint64_t axis : variable.shape()) AppendNumber(axis, &text);
  }
  // Shards hold consecutive pieces, so a variable's chunks come in order.
  for (int k = 0; k < map.shards_size(); ++k) {
    const std::string& hashes = chunk_hashes[static_cast<size_t>(k)];
    size_t at = 0;
    for (const v1::Block& block : map.shards(k).blocks()) {
      const uint64_t chunks = (block.end() - block.begin() + kChunkElements - 1) / kChunkElements;
      if (hashes.size() - at < chunks * kHash128Bytes) {
        return absl::InternalError(absl::StrCat("shard ", k, " reported too few chunk hashes"));
      }
      by_name[block.variable()].append(hashes, at, chunks * kHash128Bytes);
      at += chunks * kHash128Bytes;
    }
    if (at != hashes.size()) {
      return absl::InternalError(absl::StrCat("shard ", k, " reported too many chunk hashes"));
    }
  }
  std::string all;
  for (const auto& [name, text] : by_name) all += text;
  return absl::BytesToHexString(Hash128(all.data(), all.size()));
}

}  // namespace tandem
