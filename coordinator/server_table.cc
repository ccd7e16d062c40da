#include "coordinator/server_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {

void ServerTable::Add(uint64_t node, const std::string& address, const std::string& incarnation) {
  nodes_[node] = {address, incarnation, false, {}};
  by_life_[incarnation] = node;
  places_[address] = incarnation;
  lost_.erase(incarnation);
}

void ServerTable::Report(uint64_t node, const v1::ServerStatus& status) {
  auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  it->second.reported = true;
  it->second.status = status;
}

void ServerTable::Remove(uint64_t node, const std::string& why) {
  auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  const Server server = std::move(it->second);
  nodes_.erase(it);
  by_life_.erase(server.incarnation);
  auto place = places_.find(server.address);
  if (place != places_.end() && place->second == server.incarnation) places_.erase(place);
  lost_[server.incarnation] = absl::StrCat(server.address, " ", why);
}

std::vector<Candidate> ServerTable::Reported() const {
  std::vector<Candidate> servers;
  for (const auto& [node, server] : nodes_) {
    if (server.reported) servers.push_back({server.address, server.incarnation});
  }
  return servers;
}

uint64_t ServerTable::highest_epoch() const {
  uint64_t highest = 0;
  for (const auto& [node, server] : nodes_) highest = std::max(highest, server.status.map_epoch());
  return highest;
}

const ServerTable::Server* ServerTable::Find(const v1::Holder& holder) const {
  auto it = by_life_.find(holder.incarnation());
  return it == by_life_.end() ? nullptr : &nodes_.at(it->second);
}

bool ServerTable::HasReported(const v1::Holder& holder) const {
  const Server* server = Find(holder);
  return server != nullptr && server->reported;
}

bool ServerTable::Lost(const v1::Holder& holder) const {
  if (Has(holder)) return false;
  return lost_.count(holder.incarnation()) > 0 || places_.count(holder.address()) > 0;
}

std::string ServerTable::WhyLost(const v1::Holder& holder) const {
  auto it = lost_.find(holder.incarnation());
  return it != lost_.end() ? it->second : absl::StrCat(holder.address(), " is not heard");
}

const v1::ShardStatus* ServerTable::Holding(const v1::Holder& holder, uint32_t shard,
                                            bool standby) const {
  const Server* server = Find(holder);
  if (server == nullptr) return nullptr;
  for (const v1::ShardStatus& status : server->status.shards()) {
    if (status.shard() == shard && status.since() == holder.since() &&
        status.standby() == standby) {
      return &status;
    }
  }
  return nullptr;
}

const v1::ShardStatus* ServerTable::Ready(const v1::ClusterMap& map, uint32_t shard) const {
  const v1::Holder& primary = map.shards(static_cast<int>(shard)).primary();
  const Server* server = Find(primary);
  if (server == nullptr || server->status.map_epoch() != map.epoch()) return nullptr;
  const v1::ShardStatus* status = Holding(primary, shard, false);
  return status != nullptr && status->ready() ? status : nullptr;
}

bool ServerTable::AllReady(const v1::ClusterMap& map) const {
  for (int k = 0; k < map.shards_size(); ++k) {
    if (Ready(map, static_cast<uint32_t>(k)) == nullptr) return false;
  }
  return true;
}

}  // namespace tandem
