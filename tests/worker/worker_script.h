// Drives a WorkerLoop as scripts: what it asks for is read as text, and answered by hand.
#ifndef TANDEM_TESTS_WORKER_WORKER_SCRIPT_H_
#define TANDEM_TESTS_WORKER_WORKER_SCRIPT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "proto/coordinator.pb.h"
#include "worker/worker_loop.h"

namespace tandem {

// Work of map epoch 1.
v1::Work Train(uint64_t step_begin, uint64_t step_end, uint32_t level, uint64_t index);
v1::Work Evaluate(uint64_t version, uint64_t chunk);

// Not thread-safe.
class WorkerScript {
 public:
  // The map (epoch 1) is not there yet.
  WorkerScript(int threads, int shards, bool synchronous, uint32_t replicas);

  void Map(uint64_t epoch);
  // What it has asked for since the last look, one line each, in order:
  //   lease, lease done 0:(1, 0) done chunk 3 of 10
  //   shard 0: push 0:(1, 0) pull 1
  //   compute 0:(1, 0), combine 0:(0, 0) 0:(0, 1), evaluate 3
  //   wake, abandon, register, give up: WHY, leave
  std::vector<std::string> Asks();

  // Answers to the oldest open lease call: work (a new grant), nothing, an error, the end.
  void Grant(const std::vector<v1::Work>& work);
  void GrantAgain();  // The last grant, repeated.
  void NoWork() { Answer(v1::LeaseResponse()); }
  void LeaseError(const absl::Status& status);
  void End();

  // The oldest open task is done, with values that name it.
  void Computed(double seconds = 0);
  void ComputeFails(const absl::Status& status);
  // Every push of the oldest exchange that has one is acknowledged; its weights arrive.
  void Pushed();
  void Pulled();
  void ExchangeError(const absl::Status& status);
  void PassTo(int64_t ms);

  const v1::LeaseRequest& last_lease() const { return last_lease_; }

  WorkerLoop loop;
  int64_t now_ms = 0;

 private:
  void Answer(const v1::LeaseResponse& response);
  void Take();
  std::string Read(const WorkerAction& action);

  int shards_;
  uint64_t grant_ = 0;
  v1::LeaseResponse last_grant_;
  v1::LeaseRequest last_lease_;
  WorkerActions actions_;
  std::vector<std::string> asks_;
  std::deque<uint64_t> leases_;
  std::deque<WorkerAction> tasks_;
  std::deque<Exchange> pushes_, pulls_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_WORKER_WORKER_SCRIPT_H_
