#include "ps_server/server_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"

namespace tandem {
namespace {

// A disk that refuses to read is asked again after so long.
constexpr int64_t kLoadAgainMs = 1000;

void AddAnswers(std::vector<ShardAnswer> answers, ServerActions* actions) {
  for (ShardAnswer& answer : answers) actions->push_back(std::move(answer));
}

absl::Status MapChanged() { return absl::FailedPreconditionError("the cluster map has changed"); }

}  // namespace

ServerLoop::ServerLoop(std::string incarnation, std::shared_ptr<const ShardJob> job,
                       bool checkpoints, uint64_t jitter_seed)
    : incarnation_(std::move(incarnation)),
      job_(std::move(job)),
      checkpoints_(checkpoints),
      jitter_seed_(jitter_seed) {}

// ---- The map ----

void ServerLoop::OnState(int64_t now_ms, const v1::ClusterState& state, ServerActions* actions) {
  phase_ = state.phase();
  if (state.map().epoch() == map_.epoch()) return;
  map_ = state.map();
  std::map<uint32_t, Holding> before = std::exchange(holdings_, {});
  for (uint32_t k = 0; k < static_cast<uint32_t>(map_.shards_size()); ++k) {
    TakeRole(k, map_.shards(static_cast<int>(k)).primary(), false, &before, actions);
    TakeRole(k, StandbyOf(k), true, &before, actions);
  }
  for (auto& [shard, holding] : before) Release(&holding, actions);
  Work(now_ms, actions);
}

const v1::Holder& ServerLoop::StandbyOf(uint32_t shard) const {
  return map_.shards(static_cast<int>(shard)).standby();
}

void ServerLoop::TakeRole(uint32_t shard, const v1::Holder& holder, bool standby,
                          std::map<uint32_t, Holding>* before, ServerActions* actions) {
  if (holder.incarnation() != incarnation_) return;
  if (auto it = before->find(shard); it != before->end() && it->second.since == holder.since()) {
    Keep(shard, std::move(it->second), standby, actions);
    before->erase(it);
    return;
  }
  Holding& holding = holdings_[shard];
  holding.since = holder.since();
  holding.standby = standby;
}

void ServerLoop::Keep(uint32_t shard, Holding holding, bool standby, ServerActions* actions) {
  // A standby that did not change is not filled again.
  const v1::Holder& other = StandbyOf(shard);
  const bool same_standby =
      holding.link.incarnation == other.incarnation() && holding.link.since == other.since();
  const bool filled = holding.link.filled && same_standby;
  std::deque<WaitingPush> waiting = std::move(holding.waiting);
  holding.waiting.clear();
  for (WaitingPush& push : waiting) {
    // The sender repeats it under the new map; the standby may have it, so it is not forgotten.
    if (push.call != 0) actions->push_back(ShardAnswer{push.call, MapChanged(), {}, {}});
    push.call = 0;
    push.push.set_map_epoch(map_.epoch());
  }
  Release(&holding, actions);
  holding.waiting = std::move(waiting);
  holding.link.filled = filled;
  holding.standby = standby;
  holdings_[shard] = std::move(holding);
}

void ServerLoop::Release(Holding* holding, ServerActions* actions) {
  if (holding->link.id != 0) actions->push_back(CloseLink{holding->link.id});
  holding->link = StandbyLink();
  if (holding->replica_call != 0) {
    actions->push_back(EndReplica{holding->replica_call, MapChanged()});
  }
  holding->replica_call = 0;
  for (const WaitingPush& push : holding->waiting) {
    if (push.call != 0) actions->push_back(ShardAnswer{push.call, MapChanged(), {}, {}});
    waiting_bytes_ -= push.gradient.bytes();
  }
  holding->waiting.clear();
  if (holding->shard == nullptr) return;
  std::vector<ShardAnswer> answers;
  holding->shard->Adopt(map_.epoch(), &answers);
  AddAnswers(std::move(answers), actions);
}

void ServerLoop::Work(int64_t now_ms, ServerActions* actions) {
  for (auto& [shard, holding] : holdings_) Work(now_ms, shard, &holding, actions);
}

void ServerLoop::Work(int64_t now_ms, uint32_t shard, Holding* holding, ServerActions* actions) {
  if (holding->shard == nullptr) MakeContent(now_ms, shard, holding, actions);
  if (holding->shard == nullptr || holding->standby) return;
  if (StandbyOf(shard).incarnation().empty()) {
    while (!holding->waiting.empty()) ApplyFirstWaiting(shard, holding, actions);
  } else {
    OpenStandby(now_ms, shard, holding, actions);
  }
  SaveCut(shard, holding, actions);
}

void ServerLoop::OnTime(int64_t now_ms, ServerActions* actions) { Work(now_ms, actions); }

// ---- Content ----

void ServerLoop::MakeContent(int64_t now_ms, uint32_t shard, Holding* holding,
                             ServerActions* actions) {
  if (holding->since != map_.began()) {
    if (!holding->standby) holding->trouble = "a primary cannot begin within a history";
    return;  // The primary fills it.
  }
  if (holding->load != 0 || holding->checkpoint_damaged || now_ms < holding->load_again_ms) return;
  if (map_.checkpoint().empty()) {
    absl::StatusOr<std::unique_ptr<Shard>> made =
        Shard::Create(job_, map_, static_cast<int>(shard));
    if (!made.ok()) {
      actions->push_back(FailServer{std::move(made).status()});
      return;
    }
    holding->shard = *std::move(made);
    return;
  }
  holding->load = next_id_++;
  const auto& blocks = map_.shards(static_cast<int>(shard)).blocks();
  actions->push_back(LoadShard{holding->load, map_.checkpoint(), {blocks.begin(), blocks.end()}});
}

void ServerLoop::OnLoaded(int64_t now_ms, uint64_t load, absl::StatusOr<ShardTensors> tensors,
                          ServerActions* actions) {
  auto it = std::find_if(holdings_.begin(), holdings_.end(),
                         [load](const auto& entry) { return entry.second.load == load; });
  if (it == holdings_.end()) return;
  const auto& [shard, holding] = *it;
  Holding* const into = &it->second;
  into->load = 0;
  absl::Status status = tensors.status();
  bool damaged = absl::IsDataLoss(status) || absl::IsNotFound(status);
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<Shard>> made =
        Shard::Restore(job_, map_, static_cast<int>(shard), *std::move(tensors));
    status = made.status();
    damaged = !status.ok();
    if (made.ok()) into->shard = *std::move(made);
  }
  into->trouble = std::string(status.message());
  into->checkpoint_damaged = damaged;
  if (!status.ok() && !damaged) {
    into->load_again_ms = now_ms + kLoadAgainMs;
    actions->push_back(WakeServerAt{into->load_again_ms});
  }
  actions->push_back(SayNews{});
  Work(now_ms, shard, into, actions);
}

// ---- Checkpoints ----

void ServerLoop::SaveCut(uint32_t shard, Holding* holding, ServerActions* actions) {
  const std::optional<uint64_t> cut = holding->shard->cut();
  if (!checkpoints_ || holding->save != 0 || !cut.has_value() || *cut <= holding->saved_step ||
      *cut <= map_.step() || !holding->shard->failure().ok()) {
    return;
  }
  if (*cut % job_->spec.checkpoint().every_steps() != 0 && *cut != job_->plan.total_steps()) return;
  holding->save = next_id_++;
  holding->saved_step = *cut;
  actions->push_back(SaveShard{holding->save, AsideName(*cut, map_.began()),
                               static_cast<int>(shard), map_.shards_size(), *cut,
                               holding->shard->Snapshot()});
}

void ServerLoop::OnSaved(int64_t now_ms, uint64_t save, const absl::StatusOr<v1::SavedShard>& saved,
                         ServerActions* actions) {
  auto it = std::find_if(holdings_.begin(), holdings_.end(),
                         [save](const auto& entry) { return entry.second.save == save; });
  if (it == holdings_.end()) return;
  Holding& holding = it->second;
  holding.save = 0;
  holding.saved.Clear();
  if (saved.ok()) {
    holding.saved = *saved;
  } else {
    holding.saved.set_folder(AsideName(holding.saved_step, map_.began()));
    holding.saved.set_error(std::string(saved.status().message()));
  }
  holding.saved.set_step(holding.saved_step);
  actions->push_back(SayNews{});
  Work(now_ms, it->first, &holding, actions);  // The last step's may have waited.
}

// ---- The data path ----

absl::StatusOr<Shard*> ServerLoop::FindPrimary(uint32_t shard, uint64_t map_epoch) const {
  if (map_.epoch() == 0) return absl::UnavailableError("this server has no cluster map yet");
  if (map_epoch != map_.epoch()) {
    return absl::FailedPreconditionError(
        absl::StrCat("map epoch ", map_epoch, " is not current; this server's is ", map_.epoch()));
  }
  auto it = holdings_.find(shard);
  if (it == holdings_.end() || it->second.standby) {
    return absl::FailedPreconditionError(absl::StrCat("this server is not the primary of shard ",
                                                      shard, " in cluster map ", map_.epoch()));
  }
  if (it->second.shard == nullptr) {
    return absl::UnavailableError(absl::StrCat("shard ", shard, " is not there yet"));
  }
  return it->second.shard.get();
}

absl::StatusOr<size_t> ServerLoop::CheckPush(const v1::Push& push) const {
  TANDEM_ASSIGN_OR_RETURN(const Shard* const shard, FindPrimary(push.shard(), push.map_epoch()));
  return shard->CheckPush(push);
}

absl::Status ServerLoop::NonFiniteError(const v1::Push& push, size_t element) const {
  TANDEM_ASSIGN_OR_RETURN(const Shard* const shard, FindPrimary(push.shard(), push.map_epoch()));
  return shard->NonFiniteError(push, element);
}

void ServerLoop::Push(int64_t now_ms, uint64_t call, const v1::Push& push, Payload gradient,
                      ServerActions* actions) {
  // Payloads take time: what held when this one began may not hold any more.
  const absl::StatusOr<Shard*> shard = FindPrimary(push.shard(), push.map_epoch());
  absl::Status status = shard.status();
  if (status.ok()) status = (*shard)->CheckWhole(push, gradient);
  if (!status.ok()) {
    actions->push_back(ShardAnswer{call, std::move(status), {}, {}});
    return;
  }
  Holding* const holding = &holdings_.at(push.shard());
  if (StandbyOf(push.shard()).incarnation().empty()) {
    Apply(push.shard(), holding, call, push, std::move(gradient), actions);
    return;
  }
  waiting_bytes_ += gradient.bytes();
  holding->waiting.push_back({call, push, std::move(gradient)});
  const WaitingPush& last = holding->waiting.back();
  if (holding->link.id != 0) {
    actions->push_back(SendPush{holding->link.id, last.push, last.gradient});
  }
}

void ServerLoop::Apply(uint32_t shard, Holding* holding, uint64_t call, const v1::Push& push,
                       Payload gradient, ServerActions* actions) {
  std::vector<ShardAnswer> answers;
  holding->shard->Push(call, push, std::move(gradient), &answers);
  AddAnswers(std::move(answers), actions);
  if (!holding->standby) SaveCut(shard, holding, actions);
}

void ServerLoop::Pull(int64_t now_ms, uint64_t call, const v1::Pull& pull, ServerActions* actions) {
  const absl::StatusOr<Shard*> shard = FindPrimary(pull.shard(), pull.map_epoch());
  std::vector<ShardAnswer> answers;
  if (shard.ok()) {
    (*shard)->Pull(call, pull, &answers);
  } else {
    answers.push_back({call, shard.status(), {}, {}});
  }
  AddAnswers(std::move(answers), actions);
}

void ServerLoop::Cancel(uint64_t call) {
  for (auto& [shard, holding] : holdings_) {
    if (holding.shard != nullptr) holding.shard->Cancel(call);
  }
}

// ---- What it says of itself ----

v1::ServerStatus ServerLoop::Status() const {
  v1::ServerStatus status;
  status.set_map_epoch(map_.epoch());
  for (const auto& [shard, holding] : holdings_) {
    v1::ShardStatus* out = status.add_shards();
    if (holding.shard != nullptr) {
      *out = holding.shard->Status(phase_ == v1::PHASE_REPORTING && !holding.standby);
    }
    out->set_shard(shard);
    out->set_since(holding.since);
    out->set_standby(holding.standby);
    out->set_trouble(holding.trouble);
    out->set_checkpoint_damaged(holding.checkpoint_damaged);
    if (holding.saved.step() > 0) *out->mutable_saved() = holding.saved;
  }
  return status;
}

absl::StatusOr<v1::InspectResponse> ServerLoop::Inspect(const v1::InspectRequest& request) const {
  if (map_.epoch() == 0) return absl::UnavailableError("this server has no cluster map yet");
  auto it = holdings_.find(request.shard());
  if (it == holdings_.end() || it->second.shard == nullptr) {
    return absl::NotFoundError(absl::StrCat("this server does not hold shard ", request.shard()));
  }
  v1::InspectResponse response = it->second.shard->Inspect(request.chunk_hashes());
  response.set_standby(it->second.standby);
  return response;
}

bool ServerLoop::serving() const {
  return !holdings_.empty() && std::all_of(holdings_.begin(), holdings_.end(),
                                           [](const auto& e) { return e.second.shard != nullptr; });
}

}  // namespace tandem
