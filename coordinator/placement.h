// Which shard holds what: the variables laid end to end, cut into as many pieces as there are
// shards, as equal in bytes as the unit of placement allows. The same for the same variables and
// count.
#ifndef TANDEM_COORDINATOR_PLACEMENT_H_
#define TANDEM_COORDINATOR_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "proto/cluster.pb.h"

namespace tandem {

// Blocks begin at multiples of this many elements of their variable, and chunk hashes are over as
// many.
constexpr uint64_t kChunkElements = 1024;

uint64_t NumElements(const v1::Variable& variable);

// Element k: the blocks of shard k, which may be none. `shards` is at least 1.
std::vector<std::vector<v1::Block>> PlaceBlocks(const std::vector<v1::Variable>& variables,
                                                int shards);

// The params digest: XXH3-128, in hexadecimal, of every variable in the order of names: its name,
// its shape, and the hashes of its chunks. `chunk_hashes[k]` are those of shard k's blocks, in
// order. INTERNAL when they are not as many as the blocks need.
absl::StatusOr<std::string> ParamsDigest(const v1::ClusterMap& map,
                                         const std::vector<std::string>& chunk_hashes);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_PLACEMENT_H_
