// How the R micro-batches of a step are split among workers: contiguous ranges, sized by speed.
#ifndef TANDEM_COORDINATOR_PARTITION_H_
#define TANDEM_COORDINATOR_PARTITION_H_

#include <cstdint>
#include <vector>

namespace tandem {

struct ReplicaRange {
  uint32_t begin = 0, end = 0;  // [begin, end), empty for a worker that stands by.
  uint32_t size() const { return end - begin; }
};

// One range for each of `speeds` (each above 0 and finite), in their order; together they are [0,
// replicas). Sizes are in proportion to the speeds by largest remainders, so no other whole sizes
// are nearer to it.
std::vector<ReplicaRange> SplitReplicas(uint32_t replicas, const std::vector<double>& speeds);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_PARTITION_H_
