// Which examples a micro-batch holds: a pure function of (job, step, r). No state, O(1) memory.
#ifndef TANDEM_COMMON_DATA_BATCH_PLAN_H_
#define TANDEM_COMMON_DATA_BATCH_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace tandem {

// A random order of 0..n-1 that needs no memory: a Feistel network over the next power of four with
// cycle walking (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), keyed by
// (seed, epoch). Thread-safe. The order is part of a job's arithmetic: it never changes.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);
  // `i` below n. A bijection of 0..n-1.
  uint64_t operator()(uint64_t i) const;

 private:
  // Four rounds suffice against a distinguisher with few queries on a large domain; eight keep the
  // orders of a handful of examples even, too.
  static constexpr int kRounds = 8;

  uint64_t Encrypt(uint64_t x) const;

  uint64_t n_;
  int half_bits_;
  uint64_t half_mask_;
  std::array<uint64_t, kRounds> round_keys_;
};

// Thread-safe.
class BatchPlan {
 public:
  // `training` and `dataset` with their defaults filled in (global_batch_size and replicas at least
  // 1); `examples` of the train split, at least 1.
  BatchPlan(const v1::Training& training, bool shuffle, uint64_t seed, uint64_t examples);

  uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  // `steps` of the job, or its `epochs` times steps_per_epoch().
  uint64_t total_steps() const { return total_steps_; }
  uint32_t replicas() const { return replicas_; }
  uint64_t epoch(uint64_t step) const { return step / steps_per_epoch_; }

  // Examples of the whole global batch of `step`: the last one of an epoch may be short.
  uint64_t BatchExamples(uint64_t step) const;
  // Examples of micro-batch (step, r): sizes differ by at most one, the larger first; may be 0.
  uint64_t MicroBatchExamples(uint64_t step, uint32_t r) const;
  // The numbers of those examples, in order, into *indices.
  void MicroBatch(uint64_t step, uint32_t r, std::vector<uint64_t>* indices) const;

 private:
  // The place of the first example of `step`'s batch in the order of its epoch.
  uint64_t BatchBegin(uint64_t step) const { return step % steps_per_epoch_ * batch_size_; }

  uint64_t examples_, batch_size_, seed_;
  uint32_t replicas_;
  bool shuffle_;
  uint64_t steps_per_epoch_, total_steps_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_BATCH_PLAN_H_
