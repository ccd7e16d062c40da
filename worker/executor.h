// Computes: a few threads, each with a model replica of its own, one kernel thread each. Tasks so
// short that handing them over would cost more than they do run on the caller's thread.
#ifndef TANDEM_WORKER_EXECUTOR_H_
#define TANDEM_WORKER_EXECUTOR_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/data/batch_plan.h"
#include "common/data/dataset.h"
#include "common/nn/model.h"
#include "common/tensor/buffer_pool.h"
#include "worker/actions.h"

namespace tandem {

// What a job means to a worker.
struct WorkerJob {
  v1::JobSpec spec;  // With defaults filled in.
  std::unique_ptr<const Model> model;
  BatchPlan plan;
  std::unique_ptr<const Dataset> train, test;  // `test` may be null.
};

using ComputeTask = std::variant<ComputeGradient, CombineGradients, EvaluateChunk>;

// Thread-safe where it says so.
class Executor {
 public:
  // `done` is called on the executor's threads, once for each task that is not run in place.
  Executor(std::shared_ptr<const WorkerJob> job, int threads,
           std::function<void(uint64_t task, TaskResult result)> done);
  // Waits for the tasks under way; the others are dropped.
  ~Executor();

  // Runs `task` on this thread and returns true, when such tasks have proven short; else hands it
  // to a thread, and `done` will be called. From one thread only.
  bool Run(const ComputeTask& task, TaskResult* result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops tasks that have not begun. Thread-safe.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Bench;  // One thread's replica and scratch memory.

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  std::shared_ptr<const WorkerJob> job_;
  BufferPool gradients_;
  std::function<void(uint64_t, TaskResult)> done_;
  std::unique_ptr<Bench> own_;  // The caller's.

  absl::Mutex mutex_;
  std::deque<ComputeTask> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  double usual_seconds_ ABSL_GUARDED_BY(mutex_);  // Running mean over gradient tasks.
  std::vector<std::thread> threads_;
};

}  // namespace tandem

#endif  // TANDEM_WORKER_EXECUTOR_H_
