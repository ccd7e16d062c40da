// A worker process: a member of the cluster that drives a WorkerLoop.
#ifndef TANDEM_WORKER_PROCESS_H_
#define TANDEM_WORKER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/member.h"
#include "worker/executor.h"
#include "worker/shard_client.h"
#include "worker/worker_loop.h"

namespace tandem {

struct WorkerProcessOptions {
  std::string coordinator;  // HOST:PORT.
  std::string device = "cpu";
  int threads = 0;                 // Computations at once; 0: one a processor.
  int coordinator_timeout_s = 60;  // Exit when it has not answered for so long.
};

// Not thread-safe but for Terminate.
class WorkerProcess {
 public:
  explicit WorkerProcess(WorkerProcessOptions options);
  ~WorkerProcess();

  // UNIMPLEMENTED when this processor cannot take part.
  absl::Status Start();
  // Until the job ends, or Terminate. The process's exit status.
  int Run();
  // Hands back the leases and ends Run with status 0. Thread-safe.
  void Terminate();

 private:
  void OnRegistered();
  void OnPrepared(absl::StatusOr<std::shared_ptr<const WorkerJob>> job);
  void OnState();
  void BeginMap(const v1::ClusterMap& map);
  void MakeClients(const v1::ClusterMap& map);

  // Does what the core asks, and whatever that leads to, until nothing is left to do.
  void Perform();
  void Do(Exchange exchange);
  void Do(SendLease lease);
  void Do(const WakeAt& wake);
  void Do(const AbandonAll& abandon);
  void Do(const RegisterAgain& again);
  void Do(const GiveUp& give_up);
  void Do(const Leave& leave);
  void DoTask(const ComputeTask& task);
  void Do(ComputeGradient task) { DoTask(task); }
  void Do(CombineGradients task) { DoTask(task); }
  void Do(EvaluateChunk task) { DoTask(task); }

  void Fail(const absl::Status& status);
  void SayWaiting();
  void End(int exit_status);

  WorkerProcessOptions options_;
  std::string incarnation_;
  EventLoop loop_;
  std::unique_ptr<Member> member_;
  std::thread preparing_;
  std::shared_ptr<const WorkerJob> job_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<WorkerLoop> core_;
  std::vector<std::unique_ptr<ShardClient>> clients_;  // By shard,
  uint64_t clients_epoch_ = 0;                         // of this map.
  WorkerActions actions_;
  bool performing_ = false;
  int exit_status_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_WORKER_PROCESS_H_
