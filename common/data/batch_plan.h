// Which examples a micro-batch holds: a pure function of (job, step, r). No state, O(1) memory.
#ifndef TANDEM_COMMON_DATA_BATCH_PLAN_H_
#define TANDEM_COMMON_DATA_BATCH_PLAN_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace tandem {

// A random order of 0..n-1 that needs no memory: a Feistel network over the next power of four with
// cycle walking (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), keyed by
// (seed, epoch). Thread-safe.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);
  // `i` below n. A bijection of 0..n-1.
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t Encrypt(uint64_t x) const;

  uint64_t n_;
  int half_bits_;
  uint64_t half_mask_;
  std::vector<uint64_t> round_keys_;
};

// Thread-safe.
class BatchPlan {
 public:
  // `training` and `dataset` with their defaults filled in; `examples` of the train split, at
  // least 1.
  BatchPlan(const v1::Training& training, bool shuffle, uint64_t seed, uint64_t examples);

  uint64_t steps_per_epoch() const { return steps_per_epoch_; }
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
  uint64_t examples_, batch_size_, seed_;
  uint32_t replicas_;
  bool shuffle_;
  uint64_t steps_per_epoch_, total_steps_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_BATCH_PLAN_H_
