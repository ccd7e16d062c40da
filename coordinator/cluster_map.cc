#include "coordinator/cluster_map.h"

#include <map>

#include "coordinator/placement.h"

namespace tandem {
namespace {

void SetHolder(const Candidate& server, uint64_t since, v1::Holder* holder) {
  holder->set_address(server.address);
  holder->set_incarnation(server.incarnation);
  holder->set_since(since);
}

}  // namespace

v1::ClusterMap NewHistory(const std::vector<v1::Variable>& variables, int shards,
                          const std::vector<Candidate>& servers, uint64_t epoch,
                          const std::string& checkpoint, uint64_t step) {
  v1::ClusterMap map;
  map.set_epoch(epoch);
  map.set_began(epoch);
  map.set_checkpoint(checkpoint);
  map.set_step(step);
  for (const v1::Variable& variable : variables) *map.add_variables() = variable;
  const auto blocks = PlaceBlocks(variables, shards);
  for (size_t k = 0; k < blocks.size(); ++k) {
    v1::Shard* shard = map.add_shards();
    SetHolder(servers[k], epoch, shard->mutable_primary());
    for (const v1::Block& block : blocks[k]) *shard->add_blocks() = block;
  }
  return map;
}

void Promote(v1::Shard* shard) {
  *shard->mutable_primary() = shard->standby();
  shard->clear_standby();
}

bool PlaceStandbys(const std::vector<Candidate>& servers, uint64_t epoch, v1::ClusterMap* map) {
  std::map<std::string, int> roles;  // By incarnation.
  for (const v1::Shard& shard : map->shards()) {
    ++roles[shard.primary().incarnation()];
    if (shard.has_standby()) ++roles[shard.standby().incarnation()];
  }
  bool changed = false;
  for (v1::Shard& shard : *map->mutable_shards()) {
    // One that is there stays, though a server without a role has come: until that is filled, a
    // lost primary would cost steps.
    if (shard.has_standby()) continue;
    const Candidate* best = nullptr;
    for (const Candidate& server : servers) {
      if (server.incarnation == shard.primary().incarnation()) continue;
      if (best == nullptr || roles[server.incarnation] < roles[best->incarnation]) best = &server;
    }
    if (best == nullptr) continue;
    SetHolder(*best, epoch, shard.mutable_standby());
    ++roles[best->incarnation];
    changed = true;
  }
  return changed;
}

}  // namespace tandem
