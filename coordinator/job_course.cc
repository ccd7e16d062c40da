// The part of Job that takes it from phase to phase.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/nn/model.h"
#include "coordinator/isa.h"
#include "coordinator/job.h"
#include "coordinator/placement.h"

namespace tandem {
namespace {

using Intervals = std::vector<v1::Interval>;

v1::Interval MakeInterval(uint64_t begin, uint64_t end) {
  v1::Interval interval;
  interval.set_begin(begin);
  interval.set_end(end);
  return interval;
}

// Of two sorted lists of disjoint intervals, what is in both.
Intervals Intersect(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t begin = std::max(a[i].begin(), b[j].begin());
    const uint64_t end = std::min(a[i].end(), b[j].end());
    if (begin < end) both.push_back(MakeInterval(begin, end));
    (a[i].end() < b[j].end() ? i : j) += 1;
  }
  return both;
}

}  // namespace

void Job::SetPhase(v1::Phase phase) {
  state_.set_phase(phase);
  state_.set_sequence(state_.sequence() + 1);
  state_.set_waiting_for(WaitingFor());
  grant_held_ = true;
}

std::string Job::WaitingFor() const {
  if (phase() == v1::PHASE_ENDED) return "";
  std::vector<std::string> parts;
  if (!disk_trouble_.empty()) parts.push_back(absl::StrCat("the state directory: ", disk_trouble_));
  if (!map_waits_.empty()) parts.push_back(map_waits_);
  if (phase() == v1::PHASE_WAITING && !started_) {
    const size_t workers = Live(v1::ROLE_WORKER).size();
    if (workers < static_cast<size_t>(options_.min_workers)) {
      parts.push_back(absl::StrCat("workers: ", workers, " of ", options_.min_workers));
    }
  }
  if (phase() == v1::PHASE_WAITING && parts.empty()) return "servers to take their shards";
  if (phase() == v1::PHASE_TRAINING || phase() == v1::PHASE_EVALUATING) {
    const bool any = std::any_of(members_.begin(), members_.end(), [](const auto& entry) {
      return entry.second.role == v1::ROLE_WORKER;
    });
    if (!any) parts.push_back(absl::StrCat("workers: 0 of ", options_.min_workers));
  }
  if (phase() == v1::PHASE_REPORTING && keeps_state() && !book_.Settled(plan_.total_steps())) {
    parts.push_back("the last checkpoint");
  }
  return absl::StrJoin(parts, "; ");
}

void Job::Advance(int64_t now_ms, Replies* replies) {
  for (bool moved = true; moved;) {
    TendMap();
    switch (phase()) {
      case v1::PHASE_WAITING:
        moved = AdvanceWaiting();
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
  NoteBase();
  state_.set_waiting_for(WaitingFor());
  if (phase() == v1::PHASE_ENDED && ended_ms_ < 0) ended_ms_ = now_ms;
  GrantHeld(replies);
  AnswerHeartbeats(replies);
}

// ---- Waiting ----

bool Job::AdvanceWaiting() {
  if (!MapStands() || !servers_.AllReady(state_.map())) return false;
  if (!started_ && !starting_) Start();
  if (!started_) return false;
  if (!BuildLeases()) return true;  // The map is to be looked after.
  leases_ready_ = true;
  SetSegment(training_.base());
  SetPhase(v1::PHASE_TRAINING);
  return true;
}

// With the best instruction set that all of the first workers have.
void Job::Start() {
  const std::vector<uint64_t> workers = Live(v1::ROLE_WORKER);
  if (workers.empty() || workers.size() < static_cast<size_t>(options_.min_workers)) return;
  std::string isa = state_.cpu_isa();
  if (isa.empty()) {
    isa = "avx512";
    for (uint64_t node : workers) {
      if (IsaRank(members_.at(node).cpu_isa) < IsaRank(isa)) isa = members_.at(node).cpu_isa;
    }
  }
  starting_ = true;
  v1::JournalRecord record;
  record.mutable_started()->set_cpu_isa(isa);
  Record(std::move(record));
}

bool Job::BuildLeases() {
  if (synchronous()) return BuildSynchronousLeases();
  BuildAsynchronousLeases();
  return true;
}

// Training goes on at the lowest version: who is one ahead still has the version before.
bool Job::BuildSynchronousLeases() {
  uint64_t lowest = UINT64_MAX, highest = 0;
  for (int k = 0; k < state_.map().shards_size(); ++k) {
    const uint64_t version = servers_.Ready(state_.map(), static_cast<uint32_t>(k))->version();
    lowest = std::min(lowest, version);
    highest = std::max(highest, version);
  }
  if (highest > lowest + 1 || highest > plan_.total_steps()) {
    history_broken_ = map_dirty_ = true;
    return false;
  }
  training_ = LeaseTable(lowest, plan_.total_steps(), plan_.replicas());
  return true;
}

// What all shards have applied is done.
void Job::BuildAsynchronousLeases() {
  const uint64_t replicas = plan_.replicas();
  Intervals done = {MakeInterval(0, plan_.total_steps() * replicas)};
  for (int k = 0; k < state_.map().shards_size(); ++k) {
    const v1::ShardStatus* status = servers_.Ready(state_.map(), static_cast<uint32_t>(k));
    done = Intersect(done, {status->applied().begin(), status->applied().end()});
  }
  const bool from_0 = !done.empty() && done.front().begin() == 0;
  const uint64_t base = from_0 ? done.front().end() / replicas : 0;
  training_ = LeaseTable(base, plan_.total_steps(), plan_.replicas());
  const uint64_t window_end = base + window();
  for (const v1::Interval& interval : done) {
    const uint64_t begin = std::max(interval.begin(), base * replicas);
    const uint64_t end = std::min(interval.end(), window_end * replicas);
    for (uint64_t at = begin; at < end;) {
      const uint64_t step = at / replicas, step_end = std::min(end, (step + 1) * replicas);
      training_.MarkDone(step, static_cast<uint32_t>(at - step * replicas),
                         static_cast<uint32_t>(step_end - step * replicas));
      at = step_end;
    }
  }
}

// ---- Training ----

bool Job::IsEvaluationBoundary(uint64_t step) const {
  const uint64_t every = spec_.evaluation().every_epochs() * plan_.steps_per_epoch();
  return test_examples_ > 0 && (step == plan_.total_steps() || (every > 0 && step % every == 0));
}

// A segment ends where the next evaluation is due; when not synchronous, also where the next
// checkpoint is: nothing of a later step may be applied before it.
void Job::SetSegment(uint64_t first_step) {
  segment_end_ = plan_.total_steps();
  const auto end_at_multiple_of = [this, first_step](uint64_t every) {
    if (every > 0) segment_end_ = std::min(segment_end_, (first_step / every + 1) * every);
  };
  if (test_examples_ > 0) {
    end_at_multiple_of(spec_.evaluation().every_epochs() * plan_.steps_per_epoch());
  }
  if (keeps_state() && !synchronous()) end_at_multiple_of(spec_.checkpoint().every_steps());
  grant_held_ = true;
}

bool Job::AdvanceTraining(int64_t now_ms) {
  if (!leases_ready_) {
    if (!MapStands() || !servers_.AllReady(state_.map())) return false;
    if (!BuildLeases()) return true;  // The map is to be looked after.
    leases_ready_ = grant_held_ = true;
  }
  if (training_.base() < segment_end_) return false;
  if (!training_.done() && !IsEvaluationBoundary(training_.base())) {
    SetSegment(training_.base());
    return true;
  }
  summary_.seconds = training_seconds(now_ms);
  if (test_examples_ > 0) {
    BeginEvaluation();
  } else {
    SetPhase(v1::PHASE_REPORTING);
  }
  return true;
}

// ---- Evaluating ----

void Job::BeginEvaluation() {
  const uint64_t batch = spec_.evaluation().batch_size();
  const uint64_t chunks = (test_examples_ + batch - 1) / batch;
  const uint64_t step = training_.base();
  evaluating_ = LeaseTable(step, step + 1, static_cast<uint32_t>(chunks));
  evaluation_sums_.assign(chunks, v1::Sums());
  SetPhase(v1::PHASE_EVALUATING);
}

bool Job::AdvanceEvaluating() {
  if (!leases_ready_ && MapStands() && servers_.AllReady(state_.map())) {
    leases_ready_ = grant_held_ = true;
  }
  if (!evaluating_.done()) return false;
  FinishEvaluation();
  if (phase() == v1::PHASE_ENDED) return true;
  if (training_.done()) {
    SetPhase(v1::PHASE_REPORTING);
  } else {
    SetSegment(training_.base());
    SetPhase(v1::PHASE_TRAINING);
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

// ---- The end ----

bool Job::AdvanceReporting() {
  if (ending_ || !MapStands()) return false;
  std::vector<const v1::ShardReport*> reports;
  for (int k = 0; k < state_.map().shards_size(); ++k) {
    const v1::ShardStatus* status = servers_.Ready(state_.map(), static_cast<uint32_t>(k));
    // One on its way since before the phase has none.
    if (status == nullptr || !status->has_report()) return false;
    reports.push_back(&status->report());
  }
  if (keeps_state() && !book_.Settled(plan_.total_steps())) return false;
  SumUp(reports);
  if (!failure_.ok()) {
    End(failure_);
    return true;
  }
  ending_ = true;
  v1::JournalRecord record;
  record.mutable_ended()->set_steps(summary_.steps);
  record.mutable_ended()->set_summary(summary_json());
  Record(std::move(record));
  return true;
}

void Job::SumUp(const std::vector<const v1::ShardReport*>& reports) {
  std::vector<std::string> hashes;
  const v1::ShardReport& first = *reports.front();
  for (const v1::ShardReport* report : reports) {
    hashes.push_back(report->chunk_hashes());
    summary_.duplicates_ignored += report->duplicates_ignored();
    if (!synchronous()) {
      summary_.applied.emplace_back(report->applied().begin(), report->applied().end());
    }
    if (report->epochs_size() != first.epochs_size() ||
        report->updates_applied() != first.updates_applied()) {
      failure_ = absl::InternalError("the shards did not apply the same updates");
      return;
    }
    for (int e = 0; e < first.epochs_size(); ++e) {
      if (report->epochs(e).examples() == first.epochs(e).examples()) continue;
      failure_ = absl::InternalError("the shards did not count the same examples");
    }
  }
  for (const v1::Sums& epoch : first.epochs()) {
    summary_.examples += epoch.examples();
    summary_.examples_skipped += epoch.skipped();
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
}

void Job::End(const absl::Status& failure) {
  if (phase() == v1::PHASE_ENDED) return;
  failure_ = failure;
  state_.set_failure(std::string(failure.message()));
  SetPhase(v1::PHASE_ENDED);
}

void Job::Fail(const absl::Status& status, Replies* replies) {
  End(status);
  Advance(now_ms_, replies);
}

std::string Job::summary_json() const {
  return ended_summary_.empty() ? SummaryJson(spec_, summary_, failure_) : ended_summary_;
}

uint64_t Job::steps_done() const { return training_.base(); }

double Job::running_loss() const {
  return running_.examples() == 0 ? 0 : running_.loss() / static_cast<double>(running_.examples());
}

double Job::training_seconds(int64_t now_ms) const {
  if (first_lease_ms_ < 0) return 0;
  return static_cast<double>(now_ms - first_lease_ms_) / 1000.0;
}

}  // namespace tandem
