// The part of Job that looks after the cluster map and the state directory. docs/failures.md has
// the rules.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/optim/optimizer.h"
#include "coordinator/job.h"

namespace tandem {
namespace {

constexpr int64_t kDiskRetryMs = 1000;

}  // namespace

// ---- What servers say ----

void Job::TakeStatus(uint64_t node, const v1::ServerStatus& status) {
  servers_.Report(node, status);
  map_dirty_ = true;
  const v1::ClusterMap& map = state_.map();
  for (const v1::ShardStatus& shard : status.shards()) {
    if (shard.shard() >= static_cast<uint32_t>(map.shards_size())) continue;
    // Of the map's primary, and of no other: it is its word that counts.
    const v1::Holder& primary = map.shards(static_cast<int>(shard.shard())).primary();
    const v1::ShardStatus* held = servers_.Holding(primary, shard.shard(), false);
    if (held == nullptr || primary.incarnation() != members_.at(node).incarnation) continue;
    if (shard.shard() == 0 && shard.has_epoch()) running_ = shard.epoch();
    if (shard.has_saved()) TakeSaved(shard.shard(), shard.saved());
  }
}

void Job::TakeSaved(uint32_t shard, const v1::SavedShard& saved) {
  if (!keeps_state() || phase() == v1::PHASE_ENDED) return;
  std::optional<v1::Manifest> manifest = book_.Add(shard, saved);
  summary_.checkpoints_failed = book_.failed();
  if (!manifest.has_value()) return;
  *manifest->mutable_job() = spec_;
  for (const v1::Variable& variable : variables_) *manifest->add_variables() = variable;
  manifest->set_cpu_isa(state_.cpu_isa());
  // The job file's optimizer was checked: there is one.
  if (auto optimizer = CreateOptimizer(spec_.optimizer()); optimizer.ok()) {
    manifest->set_slots(static_cast<uint32_t>((*optimizer)->num_slots()));
  }
  queue_.Add(Commit{AsideName(manifest->step(), state_.map().began()), *std::move(manifest),
                    spec_.checkpoint().keep()});
}

bool Job::HolderLost(const v1::Holder& holder) const {
  if (servers_.Has(holder)) return false;
  return servers_.Lost(holder) || now_ms_ >= holders_until_ms_;
}

// ---- The map ----

void Job::TendMap() {
  if (!map_dirty_ || phase() == v1::PHASE_ENDED || ending_ || map_pending_ ||
      now_ms_ < map_retry_ms_) {
    return;
  }
  map_dirty_ = false;
  const v1::ClusterMap& map = state_.map();
  if (const v1::ShardStatus* damaged = DamagedCheckpoint(); damaged != nullptr) {
    book_.MarkBad(map.checkpoint());
    if (book_.newest() == nullptr) {
      return End(absl::DataLossError(
          absl::StrCat("no checkpoint is good any more; the last one: ", damaged->trouble())));
    }
    BeginHistory();
  } else if (map.epoch() == 0 || history_broken_ || servers_.highest_epoch() > map.epoch()) {
    BeginHistory();
  } else {
    v1::ClusterMap next = map;
    const TakeOver taken = ReplaceLostPrimaries(&next);
    if (taken == TakeOver::kImpossible) {
      BeginHistory();
    } else if (taken != TakeOver::kWait) {
      next.set_epoch(std::max(last_epoch_, servers_.highest_epoch()) + 1);
      const bool other = ReplaceStandbys(&next);
      if (other || taken == TakeOver::kPromoted) ProposeMap(std::move(next));
    }
  }
  map_waits_ = MapWaits();
}

const v1::ShardStatus* Job::DamagedCheckpoint() const {
  const v1::ClusterMap& map = state_.map();
  for (int k = 0; k < map.shards_size(); ++k) {
    const v1::Shard& shard = map.shards(k);
    const v1::ShardStatus* status =
        servers_.Holding(shard.primary(), static_cast<uint32_t>(k), false);
    if (status != nullptr && status->checkpoint_damaged() && status->since() == map.began()) {
      return status;
    }
  }
  return nullptr;
}

Job::TakeOver Job::ReplaceLostPrimaries(v1::ClusterMap* map) const {
  TakeOver result = TakeOver::kNothing;
  bool wait = false;
  for (int k = 0; k < map->shards_size(); ++k) {
    v1::Shard* shard = map->mutable_shards(k);
    if (!HolderLost(shard->primary())) continue;
    if (!shard->has_standby() || HolderLost(shard->standby())) return TakeOver::kImpossible;
    if (!servers_.HasReported(shard->standby())) {
      wait = true;  // It may come back, or has yet to say what it has.
      continue;
    }
    const v1::ShardStatus* standby =
        servers_.Holding(shard->standby(), static_cast<uint32_t>(k), true);
    if (standby == nullptr || !standby->ready()) return TakeOver::kImpossible;
    Promote(shard);
    result = TakeOver::kPromoted;
  }
  return wait ? TakeOver::kWait : result;
}

bool Job::ReplaceStandbys(v1::ClusterMap* map) const {
  bool changed = false;
  for (v1::Shard& shard : *map->mutable_shards()) {
    if (!shard.has_standby() || !HolderLost(shard.standby())) continue;
    shard.clear_standby();
    changed = true;
  }
  // At the end there is nothing left to lose.
  if (spec_.servers().standby() == 0 || phase() == v1::PHASE_REPORTING) return changed;
  return PlaceStandbys(servers_.Reported(), map->epoch(), map) || changed;
}

void Job::BeginHistory() {
  const std::vector<Candidate> servers = servers_.Reported();
  if (servers.size() < static_cast<size_t>(options_.servers)) return;
  if (queue_.has_commits()) return;  // A newer checkpoint is about to stand.
  const CheckpointBook::Entry* from = book_.newest();
  const uint64_t epoch = std::max(last_epoch_, servers_.highest_epoch()) + 1;
  v1::ClusterMap map =
      NewHistory(variables_, options_.servers, servers, epoch, from == nullptr ? "" : from->name,
                 from == nullptr ? 0 : from->step);
  if (spec_.servers().standby() > 0) PlaceStandbys(servers, epoch, &map);
  ProposeMap(std::move(map));
}

void Job::ProposeMap(v1::ClusterMap map) {
  last_epoch_ = map.epoch();
  v1::JournalRecord record;
  const bool begins = map.began() == map.epoch();
  record.mutable_map()->set_rollbacks(summary_.rollbacks + (begins && started_ ? 1 : 0));
  *record.mutable_map()->mutable_map() = std::move(map);
  map_pending_ = true;
  Record(std::move(record));
}

void Job::InstallMap(const v1::JournalMap& record) {
  const v1::ClusterMap old = state_.map();
  const v1::ClusterMap& map = record.map();
  const bool begins = map.began() == map.epoch();
  for (int k = 0; !begins && k < map.shards_size(); ++k) {
    if (map.shards(k).primary().since() != old.shards(k).primary().since() ||
        map.shards(k).primary().incarnation() != old.shards(k).primary().incarnation()) {
      ++summary_.promotions;
    }
  }
  *state_.mutable_map() = map;
  summary_.rollbacks = record.rollbacks();
  map_pending_ = false;
  map_dirty_ = true;
  history_broken_ = false;
  leases_ready_ = false;
  book_.SetMap(map);
  servers_.ForgetLost();
  for (auto& [node, member] : members_) member.unreceived.Clear();
  evaluating_.ReleaseAll();
  if (begins) running_ = v1::Sums();
  SetPhase(begins ? v1::PHASE_WAITING : phase());
}

std::string Job::MapWaits() const {
  const v1::ClusterMap& map = state_.map();
  if (map.epoch() == 0) {
    if (servers_.size() >= static_cast<size_t>(options_.servers)) return "";
    return absl::StrCat("servers: ", servers_.size(), " of ", options_.servers);
  }
  const v1::Holder* missing = nullptr;
  int present = 0;
  for (const v1::Shard& shard : map.shards()) {
    if (servers_.Has(shard.primary())) {
      ++present;
    } else if (missing == nullptr) {
      missing = &shard.primary();
    }
  }
  if (missing != nullptr) {
    return absl::StrCat("servers: ", present, " of ", map.shards_size(), " (",
                        servers_.WhyLost(*missing), ")");
  }
  for (int k = 0; k < map.shards_size(); ++k) {
    const v1::Holder& primary = map.shards(k).primary();
    const v1::ShardStatus* status = servers_.Holding(primary, static_cast<uint32_t>(k), false);
    if (status != nullptr && !status->trouble().empty()) {
      return absl::StrCat("shard ", k, " on ", primary.address(), ": ", status->trouble());
    }
  }
  return "";
}

// ---- The state directory ----

void Job::Record(v1::JournalRecord record) {
  if (keeps_state()) {
    queue_.Add(std::move(record));
  } else {
    RecordDone(record, absl::OkStatus());
  }
}

void Job::OnStateWork(int64_t now_ms, const absl::Status& status, Replies* replies) {
  Touch(now_ms);
  map_dirty_ = true;
  if (const auto* append = std::get_if<AppendRecord>(&queue_.front())) {
    const v1::JournalRecord record = append->record;
    disk_trouble_ = status.ok() ? "" : std::string(status.message());
    // The others can be tried again as they are; of a map, what was true then may be so no more.
    const bool again = !status.ok() && (record.has_begun() || record.has_started());
    if (again) {
      queue_.Retry(now_ms + kDiskRetryMs);
    } else {
      queue_.Done();
      RecordDone(record, status);
    }
  } else {
    const uint64_t step = std::get<Commit>(queue_.front()).manifest.step();
    queue_.Done();
    if (status.ok()) {
      book_.Committed(step);
    } else {
      book_.Failed(step);
    }
    summary_.checkpoints_written = book_.written();
    summary_.checkpoints_failed = book_.failed();
  }
  Advance(now_ms, replies);
}

void Job::RecordDone(const v1::JournalRecord& record, const absl::Status& status) {
  if (record.has_map()) {
    if (status.ok() && phase() != v1::PHASE_ENDED) {
      InstallMap(record.map());
    } else {
      map_pending_ = false;
      map_retry_ms_ = now_ms_ + kDiskRetryMs;
    }
  } else if (record.has_started()) {
    state_.set_cpu_isa(record.started().cpu_isa());
    started_ = true;
    starting_ = false;
  } else if (record.has_ended()) {
    End(absl::OkStatus());  // Even when the disk refuses: the next start finds the last checkpoint.
  }
}

}  // namespace tandem
