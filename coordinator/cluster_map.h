// New cluster maps from old ones: a history that begins, a standby that takes over, a standby that
// is found. docs/failures.md has the rules. Pure functions.
#ifndef TANDEM_COORDINATOR_CLUSTER_MAP_H_
#define TANDEM_COORDINATOR_CLUSTER_MAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/cluster.pb.h"

namespace tandem {

// A server that lives.
struct Candidate {
  std::string address, incarnation;
};

// A history of `shards` shards over the first of `servers`, which are at least as many; each shard
// on a process of its own. It begins in `epoch` from `checkpoint` (of step `step`), or from the
// initial values where that is empty.
v1::ClusterMap NewHistory(const std::vector<v1::Variable>& variables, int shards,
                          const std::vector<Candidate>& servers, uint64_t epoch,
                          const std::string& checkpoint, uint64_t step);

// The standby of `shard` is its primary from now on, since when it was its standby.
void Promote(v1::Shard* shard);

// Gives every shard without a standby one of `servers`, since `epoch`: never the primary's own
// process; the one with the fewest roles in the map, and of those the first. Shards for which there
// is none stay without. Whether the map changed.
bool PlaceStandbys(const std::vector<Candidate>& servers, uint64_t epoch, v1::ClusterMap* map);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_CLUSTER_MAP_H_
