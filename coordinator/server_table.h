// The servers that are members, what each says that it holds, and which are lost. Pure.
#ifndef TANDEM_COORDINATOR_SERVER_TABLE_H_
#define TANDEM_COORDINATOR_SERVER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/cluster_map.h"
#include "proto/cluster.pb.h"
#include "proto/coordinator.pb.h"

namespace tandem {

// Not thread-safe.
class ServerTable {
 public:
  void Add(uint64_t node, const std::string& address, const std::string& incarnation);
  void Report(uint64_t node, const v1::ServerStatus& status);
  // `why` completes a sentence that begins with its address. No effect when `node` is no server.
  void Remove(uint64_t node, const std::string& why);

  size_t size() const { return nodes_.size(); }
  // Those that have reported, in the order in which they came: what they hold is known.
  std::vector<Candidate> Reported() const;
  // The highest map epoch that any of them has seen.
  uint64_t highest_epoch() const;

  // It is a member; and has said what it holds.
  bool Has(const v1::Holder& holder) const { return Find(holder) != nullptr; }
  bool HasReported(const v1::Holder& holder) const;
  // It was a member and is so no more, or its place was taken by another life. False for one that
  // this life of the coordinator has not heard yet.
  bool Lost(const v1::Holder& holder) const;
  // "s1:1 left".
  std::string WhyLost(const v1::Holder& holder) const;
  // What it says of `shard`, once it holds it as the map says; null otherwise.
  const v1::ShardStatus* Holding(const v1::Holder& holder, uint32_t shard, bool standby) const;
  // The same, of the primary, once it has taken in the map itself and its content is there.
  const v1::ShardStatus* Ready(const v1::ClusterMap& map, uint32_t shard) const;
  // Every shard's.
  bool AllReady(const v1::ClusterMap& map) const;
  // Nobody will ask any more why those who are not in the map were lost.
  void ForgetLost() { lost_.clear(); }

 private:
  struct Server {
    std::string address, incarnation;
    bool reported = false;
    v1::ServerStatus status;
  };
  const Server* Find(const v1::Holder& holder) const;

  std::map<uint64_t, Server> nodes_;
  std::map<std::string, uint64_t> by_life_;    // Incarnation to node.
  std::map<std::string, std::string> places_;  // Address to the incarnation that is there now.
  std::map<std::string, std::string> lost_;    // Incarnation to why.
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_SERVER_TABLE_H_
