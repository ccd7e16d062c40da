// The part of ServerLoop between a primary and its standby.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "ps_server/server_loop.h"

namespace tandem {
namespace {

constexpr BackoffOptions kOpenAgain{.first_ms = 20, .max_ms = 500};

}  // namespace

// ---- Primary ----

void ServerLoop::OpenStandby(int64_t now_ms, uint32_t shard, Holding* holding,
                             ServerActions* actions) {
  StandbyLink& link = holding->link;
  if (link.id != 0 || now_ms < link.open_again_ms) return;
  const v1::Holder& standby = StandbyOf(shard);
  if (link.incarnation != standby.incarnation() || link.since != standby.since()) {
    link.incarnation = standby.incarnation();
    link.since = standby.since();
    link.backoff = Backoff(Hash64(incarnation_ + standby.incarnation()) + jitter_seed_, kOpenAgain);
  }
  link.id = next_id_++;
  link.acknowledged = 0;
  OpenLink open{link.id, standby.address(), {}, {}};
  open.begin.set_map_epoch(map_.epoch());
  open.begin.set_shard(shard);
  open.begin.set_incarnation(standby.incarnation());
  open.begin.set_since(standby.since());
  // One that has been there since the history began makes its content itself.
  if (!link.filled && standby.since() != map_.began()) {
    holding->shard->Export(&open.begin, &open.state);
  }
  actions->push_back(std::move(open));
  for (const WaitingPush& waiting : holding->waiting) {
    actions->push_back(SendPush{link.id, waiting.push, waiting.gradient});
  }
}

void ServerLoop::CloseStandby(int64_t now_ms, Holding* holding, ServerActions* actions) {
  StandbyLink& link = holding->link;
  link.id = 0;
  link.open_again_ms = now_ms + link.backoff.NextMs();
  actions->push_back(WakeServerAt{link.open_again_ms});
}

void ServerLoop::ApplyFirstWaiting(uint32_t shard, Holding* holding, ServerActions* actions) {
  WaitingPush first = std::move(holding->waiting.front());
  holding->waiting.pop_front();
  waiting_bytes_ -= first.gradient.bytes();
  Apply(shard, holding, first.call, first.push, std::move(first.gradient), actions);
}

void ServerLoop::OnLinkAck(int64_t now_ms, uint64_t link, uint64_t acknowledged,
                           ServerActions* actions) {
  auto it = std::find_if(holdings_.begin(), holdings_.end(), [link](const auto& entry) {
    return entry.second.link.id == link && link != 0;
  });
  if (it == holdings_.end()) return;
  Holding& holding = it->second;
  StandbyLink& to = holding.link;
  const uint64_t begin = to.acknowledged == 0 ? 1 : 0;
  if (acknowledged <= to.acknowledged ||
      acknowledged - to.acknowledged - begin > holding.waiting.size()) {
    actions->push_back(CloseLink{link});
    CloseStandby(now_ms, &holding, actions);
    return;
  }
  uint64_t pushes = acknowledged - to.acknowledged - begin;
  to.acknowledged = acknowledged;
  to.filled = true;
  to.backoff.Reset();
  for (; pushes > 0; --pushes) ApplyFirstWaiting(it->first, &holding, actions);
}

void ServerLoop::OnLinkBroken(int64_t now_ms, uint64_t link, const absl::Status& status,
                              ServerActions* actions) {
  for (auto& [shard, holding] : holdings_) {
    if (link != 0 && holding.link.id == link) CloseStandby(now_ms, &holding, actions);
  }
}

// ---- Standby ----

const Holding* ServerLoop::FindReplica(uint64_t call) const {
  for (const auto& [shard, holding] : holdings_) {
    if (call != 0 && holding.replica_call == call) return &holding;
  }
  return nullptr;
}

Holding* ServerLoop::FindReplica(uint64_t call) {
  return const_cast<Holding*>(std::as_const(*this).FindReplica(call));
}

absl::StatusOr<size_t> ServerLoop::CheckReplica(const v1::ReplicaBegin& begin) const {
  if (begin.map_epoch() != map_.epoch()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "map epoch ", begin.map_epoch(), " is not current; this server's is ", map_.epoch()));
  }
  auto it = holdings_.find(begin.shard());
  if (begin.incarnation() != incarnation_ || it == holdings_.end() || !it->second.standby ||
      it->second.since != begin.since()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this server is not the standby of shard ", begin.shard(), " that is meant"));
  }
  if (begin.has_state()) {
    return Shard::ReplicaBytes(*job_, map_, static_cast<int>(begin.shard()), begin);
  }
  if (it->second.shard == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the content of shard ", begin.shard(), " is not there yet"));
  }
  return 0;
}

void ServerLoop::OnReplica(int64_t now_ms, uint64_t call, const v1::ReplicaBegin& begin,
                           Payload state, ServerActions* actions) {
  // The state took time to come: the map may be another one.
  absl::Status status = CheckReplica(begin).status();
  if (status.ok() && begin.has_state()) {
    absl::StatusOr<std::unique_ptr<Shard>> made =
        Shard::Import(job_, map_, static_cast<int>(begin.shard()), begin, state);
    status = made.status();
    if (made.ok()) holdings_.at(begin.shard()).shard = *std::move(made);
  }
  if (!status.ok()) {
    actions->push_back(EndReplica{call, std::move(status)});
    return;
  }
  Holding& holding = holdings_.at(begin.shard());
  if (holding.replica_call != 0) {
    actions->push_back(EndReplica{holding.replica_call,
                                  absl::FailedPreconditionError("another stream took its place")});
  }
  holding.replica_call = call;
  holding.replica_messages = 1;
  if (begin.has_state()) actions->push_back(SayNews{});
  actions->push_back(AckReplica{call, holding.replica_messages});
}

absl::StatusOr<size_t> ServerLoop::CheckReplicaPush(uint64_t call, const v1::Push& push) const {
  const Holding* const holding = FindReplica(call);
  if (holding == nullptr) return absl::FailedPreconditionError("the stream has not begun");
  return holding->shard->CheckPush(push);
}

void ServerLoop::OnReplicaPush(int64_t now_ms, uint64_t call, const v1::Push& push,
                               Payload gradient, ServerActions* actions) {
  Holding* const holding = FindReplica(call);
  if (holding == nullptr) return;
  std::vector<ShardAnswer> answers;
  holding->shard->Push(call, push, std::move(gradient), &answers);
  // A sum that overflows does so at the primary too, which ends the job for both.
  for (const ShardAnswer& answer : answers) {
    if (answer.status.ok() || !holding->shard->failure().ok()) continue;
    holding->replica_call = 0;
    actions->push_back(EndReplica{call, answer.status});
    return;
  }
  actions->push_back(AckReplica{call, ++holding->replica_messages});
}

void ServerLoop::OnReplicaGone(uint64_t call) {
  if (Holding* holding = FindReplica(call)) holding->replica_call = 0;
}

}  // namespace tandem
