// What a worker's core asks of its shell, and what the shell tells it.
#ifndef TANDEM_WORKER_ACTIONS_H_
#define TANDEM_WORKER_ACTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/tree.h"
#include "common/tensor/buffer.h"
#include "proto/coordinator.pb.h"

namespace tandem {

// A computed node: the gradient of the whole model, variables laid end to end.
struct Gradient {
  uint64_t step = 0;
  Node node;
  std::shared_ptr<const Buffer> values;  // Null: the node has no examples.
  std::vector<v1::Sums> sums;            // One for each micro-batch below the node.
  std::string skipped;  // Not empty: to be left out, and why; there are no values and sums then.
};

// One exchange with one shard: push its part of each gradient, then pull its part of the weights.
struct Exchange {
  uint64_t id = 0;  // With `shard`, names it in events.
  int shard = 0;
  std::vector<std::shared_ptr<const Gradient>> pushes;
  std::optional<uint64_t> pull_version;
  std::shared_ptr<Buffer> into;  // The whole model's weights; this shard's part is written.
};

// Compute node `node` of `step` with `weights`: the micro-batches below it, added in the tree's
// order.
struct ComputeGradient {
  uint64_t task = 0;
  uint64_t step = 0;
  Node node;
  std::shared_ptr<const Buffer> weights;
};

// Add two siblings into their parent.
struct CombineGradients {
  uint64_t task = 0;
  std::shared_ptr<const Gradient> left, right;
};

// Evaluate chunk `chunk` of the test examples with `weights`.
struct EvaluateChunk {
  uint64_t task = 0;
  uint64_t chunk = 0;
  std::shared_ptr<const Buffer> weights;
};

// Send `request` (the shell fills in who asks) and report to OnLease.
struct SendLease {
  uint64_t id = 0;
  v1::LeaseRequest request;
};

// Call OnTime at `at_ms`, or sooner.
struct WakeAt {
  int64_t at_ms = 0;
};

// Every exchange, task and lease of before is void: drop what can be dropped.
struct AbandonAll {};

// The coordinator does not know this process: register again.
struct RegisterAgain {};

// The job cannot go on, for the reason in `status`.
struct GiveUp {
  absl::Status status;
};

// The job has ended.
struct Leave {};

using WorkerAction = std::variant<Exchange, ComputeGradient, CombineGradients, EvaluateChunk,
                                  SendLease, WakeAt, AbandonAll, RegisterAgain, GiveUp, Leave>;
using WorkerActions = std::vector<WorkerAction>;

// How a task ended.
struct TaskResult {
  absl::Status status;
  std::shared_ptr<const Gradient> gradient;  // ComputeGradient, CombineGradients.
  v1::Sums sums;                             // EvaluateChunk.
  double seconds = 0;                        // What it took.
};

}  // namespace tandem

#endif  // TANDEM_WORKER_ACTIONS_H_
