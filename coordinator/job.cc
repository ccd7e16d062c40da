#include "coordinator/job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/isa.h"

namespace tandem {
namespace {

constexpr size_t kMaxIncarnationBytes = 64;
constexpr size_t kMaxMembers = 100000;

}  // namespace

Job::Job(v1::JobSpec spec, JobOptions options, const DatasetInfo& train, uint64_t test_examples,
         std::vector<v1::Variable> variables, Resume resume, int64_t now_ms)
    : spec_(std::move(spec)),
      options_(options),
      train_(train),
      test_examples_(test_examples),
      plan_(spec_.training(), spec_.dataset().shuffle(), spec_.seed(), train.examples),
      variables_(std::move(variables)),
      now_ms_(now_ms),
      state_dir_(std::move(resume.state_dir)),
      book_(std::move(resume.checkpoints), resume.map.value_or(v1::ClusterMap()),
            spec_.checkpoint().keep()),
      ended_summary_(std::move(resume.summary)),
      last_epoch_(resume.last_epoch),
      holders_until_ms_(resume.map.has_value() ? now_ms + options.lease_timeout_ms : now_ms),
      started_(resume.started),
      training_(0, plan_.total_steps(), plan_.replicas()),
      evaluating_(0, 0, 1) {
  state_.set_sequence(1);
  state_.set_phase(v1::PHASE_WAITING);
  state_.set_cpu_isa(resume.cpu_isa.empty() ? spec_.training().cpu_isa() : resume.cpu_isa);
  if (resume.map.has_value()) *state_.mutable_map() = *std::move(resume.map);
  summary_.servers = options_.servers;
  summary_.rollbacks = resume.rollbacks;
  if (!ended_summary_.empty()) {
    over_after_ms_ = now_ms + options_.lease_timeout_ms;  // Who still lives is told.
    ended_ms_ = now_ms;
    SetPhase(v1::PHASE_ENDED);
    return;
  }
  if (keeps_state() && !resume.begun) {
    v1::JournalRecord record;
    record.mutable_begun()->set_format(1);
    *record.mutable_begun()->mutable_job() = spec_;
    for (const v1::Variable& v : variables_) *record.mutable_begun()->add_variables() = v;
    Record(std::move(record));
  }
  map_waits_ = MapWaits();
  state_.set_waiting_for(WaitingFor());
}

void Job::Touch(int64_t now_ms) {
  const int64_t gap = now_ms - now_ms_;
  now_ms_ = now_ms;
  if (gap <= 2 * options_.hold_ms) return;
  for (auto& [node, member] : members_) member.heard_ms += gap;
  holders_until_ms_ += gap;
  base_since_ms_ += gap;
}

// ---- Membership ----

Job::Member* Job::Find(uint64_t node, const std::string& incarnation) {
  auto it = members_.find(node);
  return it != members_.end() && it->second.incarnation == incarnation ? &it->second : nullptr;
}

std::vector<uint64_t> Job::Live(v1::Role role) const {
  std::vector<uint64_t> nodes;
  for (const auto& [node, member] : members_) {
    if (member.role == role) nodes.push_back(node);
  }
  return nodes;
}

absl::Status Job::CheckRegistration(const v1::RegisterRequest& request) const {
  const bool is_server = request.role() == v1::ROLE_SERVER;
  if (!is_server && request.role() != v1::ROLE_WORKER) {
    return absl::InvalidArgumentError("role: expected ROLE_SERVER or ROLE_WORKER");
  }
  if (request.incarnation().empty() || request.incarnation().size() > kMaxIncarnationBytes) {
    return absl::InvalidArgumentError("incarnation: expected 1 to 64 bytes");
  }
  if (is_server && request.address().empty()) {
    return absl::InvalidArgumentError("address: a server must say where it is reached");
  }
  if (members_.size() >= kMaxMembers) return absl::ResourceExhaustedError("too many members");
  return is_server ? absl::OkStatus() : CheckWorker(request);
}

absl::Status Job::CheckWorker(const v1::RegisterRequest& request) const {
  const int rank = IsaRank(request.cpu_isa());
  if (rank < 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("cpu_isa \"", request.cpu_isa(), "\" is unknown; expected avx2 or avx512"));
  }
  if (!state_.cpu_isa().empty() && rank < IsaRank(state_.cpu_isa())) {
    return absl::PermissionDeniedError(absl::StrCat("the job's instruction set is ",
                                                    state_.cpu_isa(), ", and this worker has only ",
                                                    request.cpu_isa()));
  }
  return absl::OkStatus();
}

v1::RegisterResponse Job::Welcome(uint64_t node) const {
  v1::RegisterResponse response;
  response.set_node(node);
  *response.mutable_job() = spec_;
  response.set_heartbeat_hold_ms(static_cast<uint32_t>(options_.hold_ms));
  response.set_lease_hold_ms(static_cast<uint32_t>(options_.hold_ms));
  for (uint64_t axis : train_.example_shape) response.add_example_shape(axis);
  response.set_train_examples(train_.examples);
  response.set_test_examples(test_examples_);
  response.set_state_dir(state_dir_);
  return response;
}

void Job::OnRegister(int64_t now_ms, uint64_t call, const v1::RegisterRequest& request,
                     Replies* replies) {
  Touch(now_ms);
  if (absl::Status status = CheckRegistration(request); !status.ok()) {
    replies->push_back({call, std::move(status), v1::RegisterResponse()});
    return;
  }
  const bool is_server = request.role() == v1::ROLE_SERVER;
  // The same life again (its answer was lost), or another one at a server's address: the old one is
  // gone.
  bool known = false;
  for (auto it = members_.begin(); it != members_.end();) {
    auto old = it++;
    if (old->second.incarnation == request.incarnation() ||
        (is_server && old->second.address == request.address())) {
      known = known || old->second.incarnation == request.incarnation();
      Lose(old, "was started again", replies);
    }
  }
  const uint64_t node = next_node_++;
  Member& member = members_[node];
  member.role = request.role();
  member.incarnation = request.incarnation();
  member.address = request.address();
  member.cpu_isa = request.cpu_isa();
  member.heard_ms = now_ms;
  if (is_server) {
    servers_.Add(node, request.address(), request.incarnation());
    map_dirty_ = true;
  } else {
    if (!known) ++summary_.workers_seen;
    Replan();
  }
  replies->push_back({call, absl::OkStatus(), Welcome(node)});
  Advance(now_ms, replies);
}

void Job::OnHeartbeat(int64_t now_ms, uint64_t call, const v1::HeartbeatRequest& request,
                      Replies* replies) {
  Touch(now_ms);
  Member* member = Find(request.node(), request.incarnation());
  if (member == nullptr) {
    replies->push_back({call, absl::FailedPreconditionError("not registered; register again"),
                        v1::HeartbeatResponse()});
    return;
  }
  member->heard_ms = now_ms;
  if (member->heartbeat.call != 0) {  // An older call: its sender has given it up.
    replies->push_back({member->heartbeat.call, absl::OkStatus(), v1::HeartbeatResponse()});
  }
  member->heartbeat = {call, now_ms + options_.hold_ms};
  member->seen = request.seen();
  if (member->role == v1::ROLE_SERVER) TakeStatus(request.node(), request.server());
  if (request.leaving()) {
    replies->push_back({call, absl::OkStatus(), v1::HeartbeatResponse()});
    member->heartbeat = {};
    if (member->lease.call != 0) AnswerLease(member, {}, replies);
    Lose(members_.find(request.node()), "left", replies);
  }
  if (!request.fatal().empty()) End(absl::AbortedError(request.fatal()));
  Advance(now_ms, replies);
}

void Job::OnCancelled(int64_t now_ms, uint64_t call) {
  Touch(now_ms);
  for (auto& [node, member] : members_) {
    if (member.heartbeat.call != call && member.lease.call != call) continue;
    (member.heartbeat.call == call ? member.heartbeat : member.lease) = {};
    if (member.heartbeat.call != 0) continue;  // It is still connected.
    // A broken connection is a strong hint. A member that lives is heard again before the grace is
    // over.
    member.heard_ms = std::min(member.heard_ms,
                               now_ms - options_.lease_timeout_ms + options_.disconnect_grace_ms);
  }
}

void Job::Lose(Members::iterator member, const std::string& why, Replies* replies) {
  const absl::Status gone = absl::FailedPreconditionError("not registered; register again");
  if (const uint64_t call = member->second.heartbeat.call; call != 0) {
    replies->push_back({call, gone, v1::HeartbeatResponse()});
  }
  if (const uint64_t call = member->second.lease.call; call != 0) {
    replies->push_back({call, gone, v1::LeaseResponse()});
  }
  const uint64_t node = member->first;
  const bool is_worker = member->second.role == v1::ROLE_WORKER;
  members_.erase(member);
  servers_.Remove(node, why);
  map_dirty_ = map_dirty_ || !is_worker;
  if (phase() == v1::PHASE_ENDED || !is_worker) return;
  summary_.leases_expired += training_.Release(node) + evaluating_.Release(node);
  Replan();
}

void Job::OnTime(int64_t now_ms, Replies* replies) {
  Touch(now_ms);
  map_dirty_ = true;
  if (now_ms >= LateMs()) grant_held_ = true;
  for (auto it = members_.begin(); it != members_.end();) {
    auto member = it++;
    if (now_ms - member->second.heard_ms >= options_.lease_timeout_ms ||
        (ended_ms_ >= 0 && now_ms - ended_ms_ >= options_.lease_timeout_ms)) {
      Lose(member, "is not heard", replies);
    }
  }
  Advance(now_ms, replies);
  for (auto& [node, member] : members_) {
    if (member.heartbeat.call != 0 && member.heartbeat.until_ms <= now_ms) {
      replies->push_back({member.heartbeat.call, absl::OkStatus(), v1::HeartbeatResponse()});
      member.heartbeat = {};
      member.heard_ms = std::max(member.heard_ms, now_ms - options_.hold_ms);
    }
    if (member.lease.call != 0 && member.lease.until_ms <= now_ms)
      AnswerLease(&member, {}, replies);
  }
}

int64_t Job::next_time_ms(int64_t now_ms) const {
  int64_t next = std::min({now_ms + options_.hold_ms, queue_.next_ms(), LateMs()});
  if (now_ms < holders_until_ms_) next = std::min(next, holders_until_ms_);
  if (now_ms < map_retry_ms_) next = std::min(next, map_retry_ms_);
  if (now_ms < over_after_ms_) next = std::min(next, over_after_ms_);
  for (const auto& [node, member] : members_) {
    next = std::min(next, member.heard_ms + options_.lease_timeout_ms);
    if (member.heartbeat.call != 0) next = std::min(next, member.heartbeat.until_ms);
    if (member.lease.call != 0) next = std::min(next, member.lease.until_ms);
  }
  return std::max(next, now_ms + 1);
}

void Job::AnswerHeartbeats(Replies* replies) {
  for (auto it = members_.begin(); it != members_.end();) {
    auto member = it++;
    HeldCall& held = member->second.heartbeat;
    if (held.call == 0 || member->second.seen >= state_.sequence()) continue;
    v1::HeartbeatResponse response;
    *response.mutable_state() = state_;
    replies->push_back({held.call, absl::OkStatus(), std::move(response)});
    held = {};
    if (phase() == v1::PHASE_ENDED)
      members_.erase(member);  // Told of the end: it leaves by itself.
  }
}

}  // namespace tandem
