// The coordinator's rules: who is a member, where the shards are, who computes what, when an epoch,
// an evaluation and the job end. Pure: calls and time go in, answers come out; no thread, socket,
// file or clock. Times are milliseconds on any clock that does not go back.
//
// Phases: WAITING (for servers to install the map and for the first workers) -> TRAINING to the
// next boundary -> EVALUATING -> TRAINING ... -> REPORTING (servers hash their weights) -> ENDED. A
// server that is lost takes its part of the weights along: the job begins again under a new map
// epoch.
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
#include "coordinator/lease_table.h"
#include "coordinator/partition.h"
#include "proto/coordinator.pb.h"

namespace tandem {

struct JobOptions {
  int servers = 1;                     // Shards; the job starts when as many servers are there.
  int min_workers = 1;                 // Workers that the job waits for before it starts.
  int64_t lease_timeout_ms = 5000;     // A member not heard for so long is lost.
  int64_t disconnect_grace_ms = 1000;  // The same, once its connection broke.
  int64_t hold_ms = 1000;              // How long a call waits for news.
};

// How a job ended, or stands.
struct JobSummary {
  uint64_t steps = 0;
  uint64_t epochs = 0;
  uint64_t examples = 0;  // As the shards counted them; all shards agree, or the job fails.
  double seconds = 0;     // From the first lease to the last update.
  double final_loss = 0;  // Mean over the examples of the last epoch.
  std::vector<double> epoch_losses;
  std::map<std::string, double> evaluation;  // Metric name to value; "loss" is one.
  std::string params_digest;
  uint64_t workers_seen = 0;
  int servers = 0;
  uint64_t retries = 0, duplicates_ignored = 0, leases_expired = 0, rollbacks = 0;
  std::string cpu_isa;
  // Asynchronous and bounded: of each shard, the updates it applied (intervals of step * R + r).
  std::vector<std::vector<v1::Interval>> applied;
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
  // of the model.
  Job(v1::JobSpec spec, JobOptions options, const DatasetInfo& train, uint64_t test_examples,
      std::vector<v1::Variable> variables);

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
  // Ends the job as failed, for example on SIGTERM.
  void Fail(const absl::Status& status, Replies* replies);

  // When OnTime is due.
  int64_t next_time_ms(int64_t now_ms) const;
  v1::Phase phase() const { return state_.phase(); }
  // Ended, and every living member knows.
  bool over() const { return phase() == v1::PHASE_ENDED && members_.empty(); }
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
    uint64_t installed = 0;        // Servers: map epoch.
    uint64_t version = 0;
    std::optional<v1::ShardReport> report;
  };
  using Members = std::map<uint64_t, Member>;

  Member* Find(uint64_t node, const std::string& incarnation);
  bool synchronous() const { return spec_.training().consistency().has_sync(); }
  std::vector<uint64_t> Live(v1::Role role) const;

  // Membership.
  // Its held calls are answered: register again.
  void Lose(Members::iterator member, const std::string& why, Replies* replies);
  void LoseServer(const std::string& address);
  absl::Status CheckWorker(const v1::RegisterRequest& request) const;

  // The course of the job. Advance moves through as many phases as can be left.
  void Advance(int64_t now_ms, Replies* replies);
  bool AdvanceWaiting(int64_t now_ms);
  bool AdvanceTraining(int64_t now_ms);
  bool AdvanceEvaluating();
  bool AdvanceReporting();
  void FormMap(const std::vector<uint64_t>& servers);
  void BeginSegment(uint64_t first_step);
  void BeginEvaluation();
  void FinishEvaluation();
  void SetPhase(v1::Phase phase);
  std::string WaitingFor() const;

  // Leases.
  void TakeReport(const v1::FinishedWork& work);
  void Replan();
  uint64_t StepLimit() const;
  // False: there is nothing to answer with yet.
  bool Grant(uint64_t node, Member* worker, v1::LeaseResponse* response);
  void AddWork(uint64_t node, const Member& worker, v1::LeaseResponse* response);
  uint64_t Budget(uint64_t node, const Member& worker, uint32_t range) const;
  void AddTrainingWork(const std::vector<LeaseTable::Lease>& leases, v1::LeaseResponse* response);
  void GrantHeld(Replies* replies);
  void AnswerLease(Member* worker, v1::LeaseResponse response, Replies* replies);
  void AnswerHeartbeats(Replies* replies);

  v1::JobSpec spec_;
  JobOptions options_;
  DatasetInfo train_;
  uint64_t test_examples_;
  BatchPlan plan_;

  Members members_;
  uint64_t next_node_ = 1;
  v1::ClusterState state_;
  std::vector<v1::Variable> variables_;
  std::vector<uint64_t> shard_nodes_;  // Members that hold the map's shards; empty: no map stands.
  absl::Status failure_;
  int64_t ended_ms_ = -1;
  int64_t now_ms_ = 0;  // Of the event under way.

  LeaseTable training_;
  LeaseTable evaluating_;
  uint64_t segment_end_ = 0;
  std::vector<v1::Sums> evaluation_sums_;    // By chunk.
  std::map<uint64_t, ReplicaRange> ranges_;  // Synchronous: by worker.
  uint64_t last_grant_ = 0;
  bool grant_held_ = false;  // Something happened that may give a waiting worker work.

  uint64_t map_epoch_ = 0;
  std::string lost_server_;
  v1::Sums running_;  // The first shard's epoch under way.
  int64_t first_lease_ms_ = -1;
  JobSummary summary_;
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_H_
