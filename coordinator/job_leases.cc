// The part of Job that gives out work.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/tree.h"
#include "coordinator/job.h"

namespace tandem {
namespace {

// How much work a worker holds: enough to hide the round trip for more, little enough to be given
// to another without much delay.
constexpr double kLeaseSeconds = 0.4;
constexpr uint64_t kMinLeaseSteps = 2, kMaxLeaseSteps = 256;
// Steps, and micro-batches, that may be under way at once when nothing else bounds them: bounds the
// table's memory.
constexpr uint64_t kWindowSteps = 1 << 14, kWindowMicroBatches = 1 << 22;
// A plan is kept until some worker's speed is off by this factor.
constexpr double kReplanRatio = 1.3;
// Measurements come over the wire: beyond these they say nothing.
constexpr double kMinSpeed = 1e-6, kMaxSpeed = 1e9;
// A step is late when it stands for so long, and for so many times what it should take.
constexpr int64_t kMinLateMs = 500;
constexpr double kLateRatio = 4;

}  // namespace

void Job::OnLease(int64_t now_ms, uint64_t call, const v1::LeaseRequest& request,
                  Replies* replies) {
  Touch(now_ms);
  Member* worker = Find(request.node(), request.incarnation());
  if (worker == nullptr || worker->role != v1::ROLE_WORKER) {
    replies->push_back({call, absl::FailedPreconditionError("not registered; register again"),
                        v1::LeaseResponse()});
    return;
  }
  worker->heard_ms = now_ms;
  if (worker->lease.call != 0) AnswerLease(worker, {}, replies);
  worker->lease = {call, now_ms + options_.hold_ms};
  worker->map_epoch = request.map_epoch();
  if (request.received() >= worker->unreceived.grant()) worker->unreceived.Clear();
  summary_.retries += request.retries();
  if (request.seconds_per_micro_batch() > 0) {
    const double speed = std::clamp(1.0 / request.seconds_per_micro_batch(), kMinSpeed, kMaxSpeed);
    const bool changed = worker->speed == 0 || speed > worker->planned_speed * kReplanRatio ||
                         speed * kReplanRatio < worker->planned_speed;
    worker->speed = speed;
    if (changed) Replan();
  }
  const uint64_t base = training_.base();
  for (const v1::FinishedWork& work : request.finished()) TakeReport(work);
  // Bounded staleness: a base that moved opens steps for those who wait.
  if (training_.base() != base && !synchronous()) grant_held_ = true;
  Advance(now_ms, replies);
  worker =
      Find(request.node(), request.incarnation());  // Told of the end, it is no member any more.
  if (worker != nullptr && worker->lease.call == call) {
    v1::LeaseResponse response;
    if (Grant(request.node(), worker, &response)) AnswerLease(worker, std::move(response), replies);
  }
}

void Job::TakeReport(const v1::FinishedWork& work) {
  if (!leases_ready_ || work.map_epoch() != state_.map().epoch()) return;
  if (!work.evaluation()) {
    const Node node{work.level(), work.index()};
    if (!IsNode(node, plan_.replicas())) return;
    training_.Finish(work.step(), static_cast<uint32_t>(node.FirstLeaf()),
                     static_cast<uint32_t>(node.EndLeaf(plan_.replicas())));
  } else if (phase() == v1::PHASE_EVALUATING && work.step() == evaluating_.base() &&
             work.index() < evaluation_sums_.size()) {
    // The first of a name counts; the others would be the same.
    v1::Sums& sums = evaluation_sums_[work.index()];
    if (sums.examples() == 0) sums = work.sums();
    const auto chunk = static_cast<uint32_t>(work.index());
    evaluating_.Finish(work.step(), chunk, chunk + 1);
  }
}

void Job::Replan() {
  grant_held_ = true;
  ranges_.clear();
  if (!synchronous()) return;
  double known = 0, count = 0;
  for (const auto& [node, member] : members_) {
    if (member.role != v1::ROLE_WORKER || member.speed == 0) continue;
    known += member.speed;
    ++count;
  }
  const double usual = count == 0 ? 1.0 : known / count;  // Of a worker not yet measured.
  std::vector<double> speeds;
  std::vector<uint64_t> nodes;
  for (auto& [node, member] : members_) {
    if (member.role != v1::ROLE_WORKER) continue;
    member.planned_speed = member.speed == 0 ? usual : member.speed;
    nodes.push_back(node);
    speeds.push_back(member.planned_speed);
  }
  if (nodes.empty()) return;
  const std::vector<ReplicaRange> ranges = SplitReplicas(plan_.replicas(), speeds);
  for (size_t w = 0; w < nodes.size(); ++w) ranges_[nodes[w]] = ranges[w];
}

uint64_t Job::window() const {
  const v1::Consistency& consistency = spec_.training().consistency();
  const uint64_t window = std::min(kWindowSteps, kWindowMicroBatches / plan_.replicas() + 1);
  if (!consistency.has_bounded()) return window;
  return std::min(window, consistency.bounded().staleness() + uint64_t{1});
}

uint64_t Job::StepLimit() const { return std::min(training_.base() + window(), segment_end_); }

uint64_t Job::Budget(uint64_t node, const Member& worker, uint32_t range) const {
  const auto wanted = static_cast<uint64_t>(worker.speed * kLeaseSeconds);
  const uint64_t target =
      std::clamp(wanted, kMinLeaseSteps * range, kMaxLeaseSteps * uint64_t{range});
  const uint64_t held = training_.held(node);
  return held > target / 2 ? 0 : target - held;
}

bool Job::Grant(uint64_t node, Member* worker, v1::LeaseResponse* response) {
  if (phase() == v1::PHASE_ENDED) {
    response->set_ended(true);
    return true;
  }
  // Its sender will forget this call when it learns of the new map.
  if (!leases_ready_ || worker->map_epoch != state_.map().epoch()) return false;
  if (worker->unreceived.work_size() > 0) {
    *response = worker->unreceived;
    return true;
  }
  AddWork(node, *worker, response);
  if (response->work_size() == 0) return false;
  response->set_grant(++last_grant_);
  worker->unreceived = *response;
  if (first_lease_ms_ < 0) {
    first_lease_ms_ = now_ms_;
    summary_.resumed_at = training_.base();
  }
  return true;
}

void Job::AddWork(uint64_t node, const Member& worker, v1::LeaseResponse* response) {
  const uint64_t workers = std::max<size_t>(Live(v1::ROLE_WORKER).size(), 1);
  if (phase() == v1::PHASE_EVALUATING) {
    const uint64_t step_end = evaluating_.base() + 1;
    // What it holds counts: the call after this one comes at once, and may not take the others'
    // share.
    const uint64_t share = evaluating_.free_below(step_end) / (2 * workers) + 1;
    const uint64_t most = share - std::min(share, evaluating_.held(node));
    std::vector<LeaseTable::Lease> leases = evaluating_.TakeFirst(node, most, step_end);
    if (leases.empty()) leases = TakeLate(node, 1);
    AddEvaluationWork(leases, response);
    return;
  }
  if (phase() != v1::PHASE_TRAINING) return;
  std::vector<LeaseTable::Lease> leases;
  uint64_t most_late = 1;
  if (synchronous()) {
    const ReplicaRange range = ranges_[node];
    leases = training_.Take(node, range.begin, range.end, Budget(node, worker, range.size()),
                            StepLimit());
    most_late = std::max<uint64_t>(range.size(), 1);
  } else {
    // Few steps may be open: leave the others their share of what is free or held.
    uint64_t open = training_.free_below(StepLimit());
    for (const auto& [other, member] : members_) open += training_.held(other);
    const uint64_t share = open == 0 ? 0 : (open - 1) / workers + 1;
    const uint64_t most = share - std::min(share, training_.held(node));
    leases = training_.TakeFirst(node, std::min(most, Budget(node, worker, plan_.replicas())),
                                 StepLimit());
  }
  if (leases.empty()) leases = TakeLate(node, most_late);
  AddTrainingWork(leases, response);
}

void Job::AddEvaluationWork(const std::vector<LeaseTable::Lease>& chunks,
                            v1::LeaseResponse* response) {
  for (const LeaseTable::Lease& lease : chunks) {
    for (uint32_t chunk = lease.begin; chunk < lease.end; ++chunk) {
      v1::Work* work = response->add_work();
      work->set_map_epoch(state_.map().epoch());
      work->set_evaluation(true);
      work->set_step_begin(lease.step);
      work->set_step_end(lease.step + 1);
      work->set_index(chunk);
    }
  }
}

// ---- Backups ----

LeaseTable* Job::open_table() {
  return phase() == v1::PHASE_EVALUATING ? &evaluating_ : &training_;
}

void Job::NoteBase() {
  const uint64_t base = open_table()->base();
  const bool same_phase = base_phase_ == phase();
  if (leases_ready_ && same_phase && base == base_) return;
  if (leases_ready_ && same_phase && base > base_) {
    const double ms =
        static_cast<double>(now_ms_ - base_since_ms_) / static_cast<double>(base - base_);
    // One step that was late must not make the next ones seem in time.
    step_ms_ = step_ms_ == 0 ? ms : 0.9 * step_ms_ + 0.1 * std::min(ms, 2 * step_ms_ + 10);
  }
  base_phase_ = phase();
  base_ = base;
  base_since_ms_ = now_ms_;
}

int64_t Job::LateMs() const {
  const bool evaluating = phase() == v1::PHASE_EVALUATING;
  if (!leases_ready_ || (!evaluating && phase() != v1::PHASE_TRAINING)) return INT64_MAX;
  const int64_t soonest = base_since_ms_ + kMinLateMs;
  if (now_ms_ < soonest) return soonest;
  const auto holders = (evaluating ? evaluating_ : training_).late_holders();
  const bool anyone = std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
    return entry.second.lease.call != 0 && holders.count(entry.first) == 0;
  });
  if (holders.empty() || !anyone) return INT64_MAX;
  // A chunk of the evaluation and a micro-batch differ in their examples.
  const double size = !evaluating ? 1.0
                                  : static_cast<double>(spec_.evaluation().batch_size()) *
                                        plan_.replicas() / spec_.training().global_batch_size();
  double seconds = 0;
  for (const auto& [node, held] : holders) {
    const auto holder = members_.find(node);
    if (holder == members_.end()) continue;
    const double speed = holder->second.speed;
    seconds = std::max(seconds, speed == 0 ? static_cast<double>(options_.lease_timeout_ms) / 1000
                                           : kLateRatio * static_cast<double>(held) * size / speed);
  }
  const double ms = std::clamp(std::max(seconds * 1000, kLateRatio * step_ms_),
                               static_cast<double>(kMinLateMs), 1e9);
  return base_since_ms_ + static_cast<int64_t>(ms);
}

std::vector<LeaseTable::Lease> Job::TakeLate(uint64_t node, uint64_t most) {
  if (now_ms_ < LateMs()) return {};
  LeaseTable* table = open_table();
  if (table->late_holders().count(node) > 0) return {};  // It is late itself.
  std::vector<LeaseTable::Lease> leases = table->TakeLate(node, most);
  for (const LeaseTable::Lease& lease : leases) summary_.backups += lease.end - lease.begin;
  if (!leases.empty()) base_since_ms_ = now_ms_;
  return leases;
}

// ---- Answers ----

// Runs of steps with the same nodes become one entry for each node.
void Job::AddTrainingWork(const std::vector<LeaseTable::Lease>& leases,
                          v1::LeaseResponse* response) {
  std::map<Node, v1::Work*> open;     // Entries of the last step before the lease's,
  std::map<Node, v1::Work*> current;  // and of the lease's.
  uint64_t current_step = 0;
  for (const LeaseTable::Lease& lease : leases) {
    if (lease.step != current_step) {
      open = std::move(current);
      current.clear();
      current_step = lease.step;
    }
    std::vector<Node> nodes;
    if (synchronous()) {
      nodes = NodesOfRange(lease.begin, lease.end, plan_.replicas());
    } else {
      for (uint64_t r = lease.begin; r < lease.end; ++r) nodes.push_back({0, r});
    }
    for (const Node& node : nodes) {
      auto it = open.find(node);
      const bool goes_on = it != open.end() && it->second->step_end() == lease.step;
      v1::Work* work = goes_on ? it->second : response->add_work();
      if (!goes_on) {
        work->set_map_epoch(state_.map().epoch());
        work->set_step_begin(lease.step);
        work->set_level(node.level);
        work->set_index(node.index);
      }
      work->set_step_end(lease.step + 1);
      current[node] = work;
    }
  }
}

void Job::GrantHeld(Replies* replies) {
  if (!grant_held_) return;
  grant_held_ = false;
  for (auto it = members_.begin(); it != members_.end();) {
    auto member = it++;
    if (member->second.lease.call == 0) continue;
    v1::LeaseResponse response;
    if (!Grant(member->first, &member->second, &response)) continue;
    AnswerLease(&member->second, std::move(response), replies);
  }
}

void Job::AnswerLease(Member* worker, v1::LeaseResponse response, Replies* replies) {
  replies->push_back({worker->lease.call, absl::OkStatus(), std::move(response)});
  worker->lease = {};
}

}  // namespace tandem
