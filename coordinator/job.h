// The coordinator's rules: who is a member, where the shards are, who computes what, when an epoch,
// an evaluation and the job end. Pure: calls and time go in, answers come out; no thread, socket,
// file or clock. Times are milliseconds on any clock that does not go back.
//
// Phases: WAITING (for servers to take in the map and for the first workers) -> TRAINING to the
// next boundary -> EVALUATING -> TRAINING ... -> REPORTING (servers hash their weights) -> ENDED.
// docs/failures.md says what becomes of the map when servers are lost; when a new history begins,
// the job goes back to WAITING.
#ifndef TANDEM_COORDINATOR_JOB_H_
#define TANDEM_COORDINATOR_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/data/batch_plan.h"
#include "common/data/dataset.h"
#include "coordinator/checkpoint_book.h"
#include "coordinator/lease_table.h"
#include "coordinator/partition.h"
#include "coordinator/resume.h"
#include "coordinator/server_table.h"
#include "coordinator/state_work.h"
#include "coordinator/summary.h"
#include "proto/coordinator.pb.h"

namespace tandem {

struct JobOptions {
  int servers = 1;                     // Shards; the job starts when as many servers are there.
  int min_workers = 1;                 // Workers that the job waits for before it starts.
  int64_t lease_timeout_ms = 5000;     // A member not heard for so long is lost.
  int64_t disconnect_grace_ms = 1000;  // The same, once its connection broke.
  int64_t hold_ms = 1000;              // How long a call waits for news.
};

// Not thread-safe.
class Job {
 public:
  // An answer to call `call`; which response it holds goes with which request it was.
  struct Reply {
    uint64_t call = 0;
    absl::Status status;
    std::variant<v1::RegisterResponse, v1::HeartbeatResponse, v1::LeaseResponse> response;
  };
  using Replies = std::vector<Reply>;

  // `spec` with its defaults; `train` as scanned; `test_examples` 0 for no evaluation; `variables`
  // of the model; `resume`: what ReadState made of the state directory.
  Job(v1::JobSpec spec, JobOptions options, const DatasetInfo& train, uint64_t test_examples,
      std::vector<v1::Variable> variables, Resume resume = {}, int64_t now_ms = 0);

  // Events. Each call is answered exactly once, at once or in a later event; calls are told apart
  // by their numbers, which are never used twice.
  void OnRegister(int64_t now_ms, uint64_t call, const v1::RegisterRequest& request,
                  Replies* replies);
  void OnHeartbeat(int64_t now_ms, uint64_t call, const v1::HeartbeatRequest& request,
                   Replies* replies);
  void OnLease(int64_t now_ms, uint64_t call, const v1::LeaseRequest& request, Replies* replies);
  // The caller of a held call is gone.
  void OnCancelled(int64_t now_ms, uint64_t call);
  void OnTime(int64_t now_ms, Replies* replies);
  // What is to be written to the state directory next; to be asked for after every event. What was
  // taken must be answered by OnStateWork before there is more.
  std::optional<StateWork> TakeStateWork(int64_t now_ms) { return queue_.Take(now_ms); }
  void OnStateWork(int64_t now_ms, const absl::Status& status, Replies* replies);
  // Ends the job as failed, for example on SIGTERM. The state directory is not told: it goes on
  // from there when it is started again.
  void Fail(const absl::Status& status, Replies* replies);

  // When OnTime is due.
  int64_t next_time_ms(int64_t now_ms) const;
  v1::Phase phase() const { return state_.phase(); }
  // Ended, and every living member knows.
  bool over() const {
    return phase() == v1::PHASE_ENDED && members_.empty() && now_ms_ >= over_after_ms_;
  }
  // Not ok when the job failed.
  const absl::Status& failure() const { return failure_; }
  // Whom it waits for, in words; empty when it does not.
  const std::string& waiting_for() const { return state_.waiting_for(); }

  const v1::JobSpec& spec() const { return spec_; }
  const BatchPlan& plan() const { return plan_; }
  // Steps done everywhere.
  uint64_t steps_done() const;
  // Loss of the epoch under way so far, per example; 0 when not known.
  double running_loss() const;
  const JobSummary& summary() const { return summary_; }
  // The same in JSON; of a job that had ended before the start, as it was then.
  std::string summary_json() const;
  // Since the first lease.
  double training_seconds(int64_t now_ms) const;

 private:
  struct HeldCall {
    uint64_t call = 0;  // 0: none.
    int64_t until_ms = 0;
  };
  struct Member {
    v1::Role role;
    std::string incarnation, address, cpu_isa;
    int64_t heard_ms = 0;
    HeldCall heartbeat, lease;
    uint64_t seen = 0;             // ClusterState.sequence.
    uint64_t map_epoch = 0;        // Workers: that of the last Lease call.
    v1::LeaseResponse unreceived;  // Workers: the last grant, until they say that they have it.
    double speed = 0;              // Workers: micro-batches a second; 0 when not known.
    double planned_speed = 0;      // What its range was sized by.
  };
  using Members = std::map<uint64_t, Member>;

  Member* Find(uint64_t node, const std::string& incarnation);
  bool synchronous() const { return spec_.training().consistency().has_sync(); }
  std::vector<uint64_t> Live(v1::Role role) const;

  bool keeps_state() const { return !state_dir_.empty(); }

  // Every event begins with it. A coordinator that stood still itself takes nobody for lost.
  void Touch(int64_t now_ms);

  // Membership.
  absl::Status CheckRegistration(const v1::RegisterRequest& request) const;
  absl::Status CheckWorker(const v1::RegisterRequest& request) const;
  v1::RegisterResponse Welcome(uint64_t node) const;
  // Its held calls are answered: register again.
  void Lose(Members::iterator member, const std::string& why, Replies* replies);

  // What the servers hold (job_map.cc).
  void TakeStatus(uint64_t node, const v1::ServerStatus& status);
  void TakeSaved(uint32_t shard, const v1::SavedShard& saved);
  // There is one, and no other is on its way.
  bool MapStands() const { return state_.map().epoch() > 0 && !map_pending_ && !history_broken_; }
  bool HolderLost(const v1::Holder& holder) const;
  // Looks after the map: when a new one is due, proposes it.
  void TendMap();
  // The first primary that says that the history's checkpoint is damaged; null: none does.
  const v1::ShardStatus* DamagedCheckpoint() const;
  // Standbys take the places of lost primaries, as far as they can.
  enum class TakeOver { kNothing, kPromoted, kWait, kImpossible };
  TakeOver ReplaceLostPrimaries(v1::ClusterMap* map) const;
  bool ReplaceStandbys(v1::ClusterMap* map) const;
  void BeginHistory();
  void ProposeMap(v1::ClusterMap map);
  void InstallMap(const v1::JournalMap& record);
  std::string MapWaits() const;
  void Record(v1::JournalRecord record);
  void RecordDone(const v1::JournalRecord& record, const absl::Status& status);

  // The course of the job (job_course.cc). Advance moves through as many phases as can be left.
  void Advance(int64_t now_ms, Replies* replies);
  bool AdvanceWaiting();
  bool AdvanceTraining(int64_t now_ms);
  bool AdvanceEvaluating();
  bool AdvanceReporting();
  void Start();
  // Of what the primaries hold. False: that is not one state of the job.
  bool BuildLeases();
  bool BuildSynchronousLeases();
  void BuildAsynchronousLeases();
  bool IsEvaluationBoundary(uint64_t step) const;
  void SetSegment(uint64_t first_step);
  void BeginEvaluation();
  void FinishEvaluation();
  void SumUp(const std::vector<const v1::ShardReport*>& reports);
  void End(const absl::Status& failure);
  void SetPhase(v1::Phase phase);
  std::string WaitingFor() const;

  // Leases.
  void TakeReport(const v1::FinishedWork& work);
  void Replan();
  // Steps that may be open at once.
  uint64_t window() const;
  uint64_t StepLimit() const;
  // False: there is nothing to answer with yet.
  bool Grant(uint64_t node, Member* worker, v1::LeaseResponse* response);
  void AddWork(uint64_t node, const Member& worker, v1::LeaseResponse* response);
  uint64_t Budget(uint64_t node, const Member& worker, uint32_t range) const;
  void AddTrainingWork(const std::vector<LeaseTable::Lease>& leases, v1::LeaseResponse* response);
  void AddEvaluationWork(const std::vector<LeaseTable::Lease>& chunks, v1::LeaseResponse* response);
  // Backups: what others hold of the step that everybody waits for.
  std::vector<LeaseTable::Lease> TakeLate(uint64_t node, uint64_t most);
  LeaseTable* open_table();
  void NoteBase();
  // When the first step counts as late; INT64_MAX: it cannot.
  int64_t LateMs() const;
  void GrantHeld(Replies* replies);
  void AnswerLease(Member* worker, v1::LeaseResponse response, Replies* replies);
  void AnswerHeartbeats(Replies* replies);

  v1::JobSpec spec_;
  JobOptions options_;
  DatasetInfo train_;
  uint64_t test_examples_;
  BatchPlan plan_;

  Members members_;
  ServerTable servers_;
  uint64_t next_node_ = 1;
  v1::ClusterState state_;
  std::vector<v1::Variable> variables_;
  absl::Status failure_;
  int64_t ended_ms_ = -1;
  int64_t over_after_ms_ = INT64_MIN;
  int64_t now_ms_;  // Of the event under way.

  // The state directory.
  std::string state_dir_;
  CheckpointBook book_;
  StateQueue queue_;
  std::string disk_trouble_;   // Why the last record could not be written.
  std::string ended_summary_;  // Of a job that had ended before the start.

  // The map.
  uint64_t last_epoch_;       // Up to it, epochs may have been used.
  int64_t holders_until_ms_;  // Until then holders may come back that were not heard yet.
  bool map_dirty_ = true;     // Something happened that may ask for another map.
  bool map_pending_ = false;  // Proposed, and not yet in the journal.
  int64_t map_retry_ms_ = INT64_MIN;
  bool history_broken_ = false;  // What the primaries hold does not fit together.
  std::string map_waits_;        // For whom.

  // The course.
  bool started_;               // Training has begun, in whatever history.
  bool starting_ = false;      // It is to, once the journal has it.
  bool ending_ = false;        // It has ended, once the journal has it.
  bool leases_ready_ = false;  // Work may be given out under the present map.

  LeaseTable training_;
  LeaseTable evaluating_;
  uint64_t segment_end_ = 0;
  std::vector<v1::Sums> evaluation_sums_;    // By chunk.
  std::map<uint64_t, ReplicaRange> ranges_;  // Synchronous: by worker.
  uint64_t last_grant_ = 0;
  bool grant_held_ = false;  // Something happened that may give a waiting worker work.
  // Backups: since when the first step of the open table stands, and how long steps take.
  v1::Phase base_phase_ = v1::PHASE_WAITING;
  uint64_t base_ = 0;
  int64_t base_since_ms_ = 0;
  double step_ms_ = 0;

  v1::Sums running_;  // The first shard's epoch under way.
  int64_t first_lease_ms_ = -1;
  JobSummary summary_;
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_H_
