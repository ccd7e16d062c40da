// The three kinds of work a worker does, each a small state machine over the same desk: transfers,
// weights, tasks, and the list of what is finished. Pure.
#ifndef TANDEM_WORKER_WORK_H_
#define TANDEM_WORKER_WORK_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/coordinator.pb.h"
#include "worker/actions.h"
#include "worker/transfers.h"
#include "worker/weights_cache.h"

namespace tandem {

// What the kinds of work share. Begun anew with every cluster map.
struct Desk {
  Desk(uint64_t map_epoch, int shards, uint64_t elements, int threads, uint32_t replicas,
       uint64_t jitter_seed, uint64_t* next_task)
      : map_epoch(map_epoch),
        threads(threads),
        replicas(replicas),
        transfers(shards, jitter_seed),
        weights(elements),
        next_task(next_task) {}

  const uint64_t map_epoch;
  const int threads;  // Computations that run at once.
  const uint32_t replicas;
  Transfers transfers;
  WeightsCache weights;
  uint64_t* next_task;                     // Tasks are numbered over the process's life.
  std::set<uint64_t> combining;            // Tasks that only add: no measure of a micro-batch.
  std::vector<v1::FinishedWork> finished;  // To be reported.

  int64_t now_ms = 0;                // Of the event under way,
  WorkerActions* actions = nullptr;  // and where its actions go.

  // Begins to fetch weights: version `key` of the cache, version `version` of the shards, along
  // with `pushes`. The transfer's number.
  uint64_t Fetch(uint64_t key, uint64_t version,
                 std::vector<std::shared_ptr<const Gradient>> pushes) {
    std::shared_ptr<Buffer> into = weights.NewBuffer();
    const uint64_t transfer = transfers.Start(now_ms, std::move(pushes), version, into, actions);
    weights.Fetching(key, transfer, std::move(into));
    return transfer;
  }

  // `skipped`: why it was left out; empty when it was not.
  void Finish(uint64_t step, Node node, const std::string& skipped) {
    v1::FinishedWork& work = finished.emplace_back();
    work.set_map_epoch(map_epoch);
    work.set_step(step);
    work.set_level(node.level);
    work.set_index(node.index);
    work.set_skipped(skipped);
  }
};

// One kind of work. Events come to every kind; each knows its own by their numbers.
class WorkKind {
 public:
  virtual ~WorkKind() = default;
  // More to do.
  virtual void Add(const v1::Work& work) = 0;
  // Begins whatever can begin.
  virtual void Continue(Desk* desk) = 0;
  virtual void OnPushed(Desk* desk, uint64_t transfer) = 0;
  // The cache has version `key`, or (OnPast) no shard has it any more.
  virtual void OnWeights(Desk* desk, uint64_t key) = 0;
  virtual void OnPast(Desk* desk, uint64_t key) = 0;
  // A task is done well. False: it is not one of this kind's.
  virtual bool OnTask(Desk* desk, uint64_t task, const TaskResult& result) = 0;
  // Nodes or chunks not yet finished.
  virtual uint64_t outstanding() const = 0;
};

std::unique_ptr<WorkKind> NewSynchronousWork();
// Weights are fetched for `prefetch` more micro-batches than are computed at once.
std::unique_ptr<WorkKind> NewAsynchronousWork(int prefetch);
// `synchronous`: evaluates the very version that the work names, else what the shards hold.
std::unique_ptr<WorkKind> NewEvaluationWork(bool synchronous);

}  // namespace tandem

#endif  // TANDEM_WORKER_WORK_H_
