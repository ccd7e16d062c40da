#include "coordinator/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem {

std::vector<ReplicaRange> SplitReplicas(uint32_t replicas, const std::vector<double>& speeds) {
  if (speeds.empty()) return {};
  const double total = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<uint32_t> sizes(speeds.size());
  std::vector<double> rest(speeds.size());
  uint32_t given = 0;
  for (size_t w = 0; w < speeds.size(); ++w) {
    const double share = static_cast<double>(replicas) * speeds[w] / total;
    sizes[w] = std::min(static_cast<uint32_t>(std::floor(share)), replicas - given);
    rest[w] = share - std::floor(share);
    given += sizes[w];
  }
  std::vector<size_t> order(speeds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  for (size_t k = 0; given < replicas; k = (k + 1) % order.size(), ++given) ++sizes[order[k]];

  std::vector<ReplicaRange> ranges;
  uint32_t begin = 0;
  for (uint32_t size : sizes) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

}  // namespace tandem
