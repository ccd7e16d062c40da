// The worker's core: leases in, gradients out. Pure: events and time in, actions out; the shell
// moves the bytes, computes and talks to the coordinator.
#ifndef TANDEM_WORKER_WORKER_LOOP_H_
#define TANDEM_WORKER_WORKER_LOOP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/backoff.h"
#include "proto/coordinator.pb.h"
#include "worker/actions.h"
#include "worker/work.h"

namespace tandem {

struct WorkerOptions {
  int threads = 1;   // Computations at once.
  int prefetch = 1;  // Asynchronous: weights fetched ahead of computing.
  uint64_t jitter_seed = 0;
};

// Not thread-safe.
class WorkerLoop {
 public:
  WorkerLoop(WorkerOptions options, uint64_t model_elements, bool synchronous, uint32_t replicas);

  // The cluster has (another) map that can be worked with; its data and executor are ready.
  void OnMap(int64_t now_ms, const v1::ClusterMap& map, WorkerActions* actions);
  // The map does not stand any more, or this process was forgotten: all work is void.
  void OnReset(WorkerActions* actions);

  void OnLease(int64_t now_ms, uint64_t id, const absl::StatusOr<v1::LeaseResponse>& response,
               WorkerActions* actions);
  // `count` more pushes of exchange (id, shard) are acknowledged; the weights are in; it broke.
  void OnPushed(int64_t now_ms, uint64_t id, int shard, uint64_t count, WorkerActions* actions);
  void OnPulled(int64_t now_ms, uint64_t id, int shard, WorkerActions* actions);
  void OnExchangeError(int64_t now_ms, uint64_t id, int shard, const absl::Status& status,
                       WorkerActions* actions);
  void OnTask(int64_t now_ms, uint64_t task, const TaskResult& result, WorkerActions* actions);
  void OnTime(int64_t now_ms, WorkerActions* actions);

  // Whom it has waited for longer than `age_ms`, in words; empty when nobody.
  std::string Waiting(int64_t now_ms, int64_t age_ms) const;

 private:
  void Begin(int64_t now_ms, WorkerActions* actions);
  // After every event: begins what can begin, reports and asks.
  void Proceed(WorkerActions* actions);
  void Handle(const Transfers::Events& events, WorkerActions* actions);
  void MaybeSendLease(WorkerActions* actions);
  uint64_t Outstanding() const;
  void Measure(const TaskResult& result);

  WorkerOptions options_;
  uint64_t model_elements_;
  bool synchronous_;
  uint32_t replicas_;

  uint64_t next_task_ = 1, next_lease_ = 1, next_desk_ = 0;
  std::unique_ptr<Desk> desk_;                    // Null while there is no map.
  std::vector<std::unique_ptr<WorkKind>> kinds_;  // Training, evaluation.
  std::map<uint64_t, std::vector<v1::FinishedWork>>
      leases_;             // Calls under way, with what they report.
  uint64_t received_ = 0;  // The last grant of this map.
  Backoff lease_backoff_;
  int64_t lease_retry_ms_ = -1;
  uint64_t retries_reported_ = 0;
  double seconds_per_micro_batch_ = 0;
  bool leaving_ = false;
};

}  // namespace tandem

#endif  // TANDEM_WORKER_WORKER_LOOP_H_
