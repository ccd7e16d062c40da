#include "coordinator/job.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/nn/model.h"
#include "coordinator/placement.h"

namespace tandem {
namespace {

constexpr size_t kMaxIncarnationBytes = 64;
constexpr size_t kMaxMembers = 100000;

// Better instruction sets have larger numbers; -1 for an unknown name.
int IsaRank(const std::string& isa) { return isa == "avx512" ? 1 : isa == "avx2" ? 0 : -1; }

}  // namespace

Job::Job(v1::JobSpec spec, JobOptions options, const DatasetInfo& train, uint64_t test_examples,
         std::vector<v1::Variable> variables)
    : spec_(std::move(spec)),
      options_(options),
      train_(train),
      test_examples_(test_examples),
      plan_(spec_.training(), spec_.dataset().shuffle(), spec_.seed(), train.examples),
      variables_(std::move(variables)),
      training_(0, plan_.total_steps(), plan_.replicas()),
      evaluating_(0, 0, 1) {
  state_.set_sequence(1);
  state_.set_phase(v1::PHASE_WAITING);
  state_.set_cpu_isa(spec_.training().cpu_isa());
  state_.set_waiting_for(WaitingFor());
  summary_.servers = options_.servers;
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

void Job::OnRegister(int64_t now_ms, uint64_t call, const v1::RegisterRequest& request,
                     Replies* replies) {
  now_ms_ = now_ms;
  absl::Status status;
  const bool is_server = request.role() == v1::ROLE_SERVER;
  if (!is_server && request.role() != v1::ROLE_WORKER) {
    status = absl::InvalidArgumentError("role: expected ROLE_SERVER or ROLE_WORKER");
  } else if (request.incarnation().empty() || request.incarnation().size() > kMaxIncarnationBytes) {
    status = absl::InvalidArgumentError("incarnation: expected 1 to 64 bytes");
  } else if (is_server && request.address().empty()) {
    status = absl::InvalidArgumentError("address: a server must say where it is reached");
  } else if (members_.size() >= kMaxMembers) {
    status = absl::ResourceExhaustedError("too many members");
  } else if (!is_server) {
    status = CheckWorker(request);
  }
  if (!status.ok()) {
    replies->push_back({call, std::move(status), v1::RegisterResponse()});
    return;
  }
  // The same life again (its answer was lost), or another one at a server's address: the old one is
  // gone.
  bool known = false;
  for (auto it = members_.begin(); it != members_.end();) {
    auto old = it++;
    if (old->second.incarnation == request.incarnation() ||
        (is_server && old->second.address == request.address())) {
      known = known || old->second.incarnation == request.incarnation();
      Lose(old, "registered again", replies);
    }
  }
  Member& member = members_[next_node_];
  member.role = request.role();
  member.incarnation = request.incarnation();
  member.address = request.address();
  member.cpu_isa = request.cpu_isa();
  member.heard_ms = now_ms;
  if (!is_server) {
    if (!known) ++summary_.workers_seen;
    Replan();
  }
  v1::RegisterResponse response;
  response.set_node(next_node_++);
  *response.mutable_job() = spec_;
  response.set_heartbeat_hold_ms(static_cast<uint32_t>(options_.hold_ms));
  response.set_lease_hold_ms(static_cast<uint32_t>(options_.hold_ms));
  for (uint64_t axis : train_.example_shape) response.add_example_shape(axis);
  response.set_train_examples(train_.examples);
  response.set_test_examples(test_examples_);
  replies->push_back({call, absl::OkStatus(), std::move(response)});
  Advance(now_ms, replies);
}

void Job::OnHeartbeat(int64_t now_ms, uint64_t call, const v1::HeartbeatRequest& request,
                      Replies* replies) {
  now_ms_ = now_ms;
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
  if (request.has_server() && member->role == v1::ROLE_SERVER) {
    member->installed = request.server().map_epoch();
    v1::ShardStatus shard;
    if (request.server().shards_size() > 0) shard = request.server().shards(0);
    member->version = shard.version();
    if (shard.has_epoch() && !shard_nodes_.empty() && shard_nodes_.front() == request.node()) {
      running_ = shard.epoch();
    }
    // One on its way since before a rollback is of weights that are gone.
    if (shard.has_report() && phase() == v1::PHASE_REPORTING &&
        request.server().map_epoch() == state_.map().epoch()) {
      member->report = shard.report();
    }
  }
  if (request.leaving()) {
    replies->push_back({call, absl::OkStatus(), v1::HeartbeatResponse()});
    member->heartbeat = {};
    if (member->lease.call != 0) AnswerLease(member, {}, replies);
    Lose(members_.find(request.node()), "left", replies);
  }
  if (!request.fatal().empty()) Fail(absl::AbortedError(request.fatal()), replies);
  Advance(now_ms, replies);
}

void Job::OnCancelled(int64_t now_ms, uint64_t call) {
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
  const std::string address = member->second.address;
  members_.erase(member);
  if (phase() == v1::PHASE_ENDED) return;
  if (is_worker) {
    summary_.leases_expired += training_.Release(node) + evaluating_.Release(node);
    Replan();
  } else if (std::find(shard_nodes_.begin(), shard_nodes_.end(), node) != shard_nodes_.end()) {
    LoseServer(absl::StrCat(address, " ", why));
  }
}

// Its weights are gone, and with them the version that all shards stood at: begin again.
void Job::LoseServer(const std::string& address) {
  shard_nodes_.clear();
  state_.clear_map();
  lost_server_ = address;
  if (phase() != v1::PHASE_WAITING) ++summary_.rollbacks;
  SetPhase(v1::PHASE_WAITING);
}

void Job::OnTime(int64_t now_ms, Replies* replies) {
  now_ms_ = now_ms;
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
  int64_t next = now_ms + options_.hold_ms;
  for (const auto& [node, member] : members_) {
    next = std::min(next, member.heard_ms + options_.lease_timeout_ms);
    if (member.heartbeat.call != 0) next = std::min(next, member.heartbeat.until_ms);
    if (member.lease.call != 0) next = std::min(next, member.lease.until_ms);
  }
  return std::max(next, now_ms + 1);
}

// ---- The course of the job ----

void Job::SetPhase(v1::Phase phase) {
  state_.set_phase(phase);
  state_.set_sequence(state_.sequence() + 1);
  state_.set_waiting_for(WaitingFor());
  grant_held_ = true;
}

std::string Job::WaitingFor() const {
  if (phase() == v1::PHASE_TRAINING || phase() == v1::PHASE_EVALUATING) {
    const bool any = std::any_of(members_.begin(), members_.end(), [](const auto& entry) {
      return entry.second.role == v1::ROLE_WORKER;
    });
    return any ? "" : absl::StrCat("workers: 0 of ", options_.min_workers);
  }
  if (phase() != v1::PHASE_WAITING) return "";
  const size_t servers = Live(v1::ROLE_SERVER).size(), workers = Live(v1::ROLE_WORKER).size();
  std::vector<std::string> parts;
  if (servers < static_cast<size_t>(options_.servers)) {
    parts.push_back(
        absl::StrCat("servers: ", servers, " of ", options_.servers,
                     lost_server_.empty() ? "" : absl::StrCat(" (", lost_server_, ")")));
  }
  if (workers < static_cast<size_t>(options_.min_workers)) {
    parts.push_back(absl::StrCat("workers: ", workers, " of ", options_.min_workers));
  }
  if (parts.empty()) return "servers to take their shards";
  return parts.size() == 1 ? parts[0] : absl::StrCat(parts[0], "; ", parts[1]);
}

void Job::Advance(int64_t now_ms, Replies* replies) {
  bool moved = true;
  while (moved) {
    switch (phase()) {
      case v1::PHASE_WAITING:
        moved = AdvanceWaiting(now_ms);
        break;
      case v1::PHASE_TRAINING:
        moved = AdvanceTraining(now_ms);
        break;
      case v1::PHASE_EVALUATING:
        moved = AdvanceEvaluating();
        break;
      case v1::PHASE_REPORTING:
        moved = AdvanceReporting();
        break;
      default:
        moved = false;
    }
  }
  state_.set_waiting_for(WaitingFor());
  if (phase() == v1::PHASE_ENDED && ended_ms_ < 0) ended_ms_ = now_ms;
  GrantHeld(replies);
  AnswerHeartbeats(replies);
}

bool Job::AdvanceWaiting(int64_t now_ms) {
  const std::vector<uint64_t> servers = Live(v1::ROLE_SERVER), workers = Live(v1::ROLE_WORKER);
  if (servers.size() < static_cast<size_t>(options_.servers)) return false;
  if (shard_nodes_.empty()) FormMap(servers);
  for (uint64_t node : shard_nodes_) {
    if (members_.at(node).installed != state_.map().epoch()) return false;
  }
  if (workers.empty() || workers.size() < static_cast<size_t>(options_.min_workers)) return false;
  if (state_.cpu_isa().empty()) {
    std::string isa = "avx512";
    for (uint64_t node : workers) {
      if (IsaRank(members_.at(node).cpu_isa) < IsaRank(isa)) isa = members_.at(node).cpu_isa;
    }
    state_.set_cpu_isa(isa);
  }
  BeginSegment(0);
  return true;
}

void Job::FormMap(const std::vector<uint64_t>& servers) {
  v1::ClusterMap* map = state_.mutable_map();
  map->set_epoch(++map_epoch_);
  map->set_began(map_epoch_);
  map->clear_variables();
  map->clear_shards();
  for (const v1::Variable& variable : variables_) *map->add_variables() = variable;
  const auto blocks = PlaceBlocks(variables_, options_.servers);
  for (int k = 0; k < options_.servers; ++k) {
    const Member& server = members_.at(servers[static_cast<size_t>(k)]);
    shard_nodes_.push_back(servers[static_cast<size_t>(k)]);
    v1::Shard* shard = map->add_shards();
    shard->mutable_primary()->set_address(server.address);
    shard->mutable_primary()->set_incarnation(server.incarnation);
    shard->mutable_primary()->set_since(map_epoch_);
    for (const v1::Block& block : blocks[static_cast<size_t>(k)]) *shard->add_blocks() = block;
  }
  for (auto& [node, member] : members_) {
    member.report.reset();
    member.unreceived.Clear();
  }
  state_.set_sequence(state_.sequence() + 1);
}

void Job::BeginSegment(uint64_t first_step) {
  const uint64_t every = spec_.evaluation().every_epochs() * plan_.steps_per_epoch();
  segment_end_ = plan_.total_steps();
  if (every > 0 && test_examples_ > 0) {
    segment_end_ = std::min(segment_end_, (first_step / every + 1) * every);
  }
  if (first_step == 0) {
    training_ = LeaseTable(0, plan_.total_steps(), plan_.replicas());
    first_lease_ms_ = -1;
    running_ = v1::Sums();
  }
  SetPhase(v1::PHASE_TRAINING);
}

bool Job::AdvanceTraining(int64_t now_ms) {
  if (training_.base() < segment_end_) return false;
  summary_.seconds = training_seconds(now_ms);
  if (test_examples_ > 0) {
    BeginEvaluation();
  } else {
    SetPhase(v1::PHASE_REPORTING);
  }
  return true;
}

void Job::BeginEvaluation() {
  const uint64_t batch = spec_.evaluation().batch_size();
  const uint64_t chunks = (test_examples_ + batch - 1) / batch;
  const uint64_t step = training_.base();
  evaluating_ = LeaseTable(step, step + 1, static_cast<uint32_t>(chunks));
  evaluation_sums_.assign(chunks, v1::Sums());
  SetPhase(v1::PHASE_EVALUATING);
}

bool Job::AdvanceEvaluating() {
  if (!evaluating_.done()) return false;
  FinishEvaluation();
  if (training_.done()) {
    SetPhase(v1::PHASE_REPORTING);
  } else {
    BeginSegment(training_.base());
  }
  return true;
}

void Job::FinishEvaluation() {
  v1::Sums total;
  std::vector<double> metrics(static_cast<size_t>(spec_.metrics_size()));
  for (const v1::Sums& sums : evaluation_sums_) {  // In the order of the chunks.
    total.set_examples(total.examples() + sums.examples());
    total.set_loss(total.loss() + sums.loss());
    for (size_t m = 0; m < metrics.size() && m < static_cast<size_t>(sums.metrics_size()); ++m) {
      metrics[m] += sums.metrics(static_cast<int>(m));
    }
  }
  const auto count = static_cast<double>(std::max<uint64_t>(total.examples(), 1));
  summary_.evaluation["loss"] = total.loss() / count;
  const std::vector<std::string> names = MetricNames(spec_);
  for (size_t m = 0; m < metrics.size(); ++m) summary_.evaluation[names[m]] = metrics[m] / count;
}

bool Job::AdvanceReporting() {
  std::vector<std::string> hashes;
  for (uint64_t node : shard_nodes_) {
    if (!members_.at(node).report.has_value()) return false;
    hashes.push_back(members_.at(node).report->chunk_hashes());
  }
  const v1::ShardReport& first = *members_.at(shard_nodes_.front()).report;
  summary_.applied.clear();
  for (uint64_t node : shard_nodes_) {
    const v1::ShardReport& report = *members_.at(node).report;
    summary_.duplicates_ignored += report.duplicates_ignored();
    summary_.applied.emplace_back(report.applied().begin(), report.applied().end());
    if (report.epochs_size() != first.epochs_size() ||
        report.updates_applied() != first.updates_applied()) {
      failure_ = absl::InternalError("the shards did not apply the same updates");
    }
    for (int e = 0; e < std::min(report.epochs_size(), first.epochs_size()); ++e) {
      if (report.epochs(e).examples() != first.epochs(e).examples()) {
        failure_ = absl::InternalError("the shards did not count the same examples");
      }
    }
  }
  for (const v1::Sums& epoch : first.epochs()) {
    summary_.examples += epoch.examples();
    summary_.epoch_losses.push_back(epoch.loss() /
                                    static_cast<double>(std::max<uint64_t>(epoch.examples(), 1)));
  }
  if (!summary_.epoch_losses.empty()) summary_.final_loss = summary_.epoch_losses.back();
  summary_.epochs = summary_.epoch_losses.size();
  summary_.steps = plan_.total_steps();
  summary_.cpu_isa = state_.cpu_isa();
  absl::StatusOr<std::string> digest = ParamsDigest(state_.map(), hashes);
  if (digest.ok()) {
    summary_.params_digest = *std::move(digest);
  } else {
    failure_ = digest.status();
  }
  if (!failure_.ok()) state_.set_failure(std::string(failure_.message()));
  SetPhase(v1::PHASE_ENDED);
  return true;
}

void Job::Fail(const absl::Status& status, Replies* replies) {
  if (phase() == v1::PHASE_ENDED) return;
  failure_ = status;
  state_.set_failure(std::string(status.message()));
  SetPhase(v1::PHASE_ENDED);
  Advance(now_ms_, replies);
}

uint64_t Job::steps_done() const { return training_.base(); }

double Job::running_loss() const {
  return running_.examples() == 0 ? 0 : running_.loss() / static_cast<double>(running_.examples());
}

double Job::training_seconds(int64_t now_ms) const {
  if (first_lease_ms_ < 0) return 0;
  return static_cast<double>(now_ms - first_lease_ms_) / 1000.0;
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
