#include "common/data/batch_plan.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "common/base/random.h"

namespace tandem {
namespace {

// The finalizer of MurmurHash3 (Appleby): every bit of x changes half of the bits of the result.
uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCD;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53;
  x ^= x >> 33;
  return x;
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n_(n) {
  const int bits = n > 1 ? std::bit_width(n - 1) : 0;
  half_bits_ = (bits + 1) / 2;
  half_mask_ = (uint64_t{1} << half_bits_) - 1;
  for (int round = 0; round < kRounds; ++round) {
    const std::array<uint32_t, 4> random = RandomBits(seed, Purpose::kShuffle, epoch, round);
    round_keys_[round] = uint64_t{random[1]} << 32 | random[0];
  }
}

uint64_t Permutation::Encrypt(uint64_t x) const {
  uint64_t left = x >> half_bits_, right = x & half_mask_;
  for (const uint64_t key : round_keys_) {
    const uint64_t next = left ^ (Mix(right ^ key) & half_mask_);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t i) const {
  assert(i < n_);
  // Encrypt permutes a domain of less than 4n values. Walking along i's cycle until it is back
  // below n is a bijection of 0..n-1, and ends because i itself is on the cycle.
  do {
    i = Encrypt(i);
  } while (i >= n_);
  return i;
}

BatchPlan::BatchPlan(const v1::Training& training, bool shuffle, uint64_t seed, uint64_t examples)
    : examples_(examples),
      batch_size_(training.global_batch_size()),
      seed_(seed),
      replicas_(training.replicas()),
      shuffle_(shuffle) {
  assert(examples_ > 0 && batch_size_ > 0 && replicas_ > 0);
  steps_per_epoch_ = (examples_ - 1) / batch_size_ + 1;
  total_steps_ = training.length_case() == v1::Training::kSteps
                     ? training.steps()
                     : training.epochs() * steps_per_epoch_;
}

uint64_t BatchPlan::BatchExamples(uint64_t step) const {
  return std::min(batch_size_, examples_ - BatchBegin(step));
}

uint64_t BatchPlan::MicroBatchExamples(uint64_t step, uint32_t r) const {
  const uint64_t batch = BatchExamples(step);
  return batch / replicas_ + (r < batch % replicas_ ? 1 : 0);
}

void BatchPlan::MicroBatch(uint64_t step, uint32_t r, std::vector<uint64_t>* indices) const {
  const uint64_t batch = BatchExamples(step);
  const uint64_t begin =
      BatchBegin(step) + r * (batch / replicas_) + std::min<uint64_t>(r, batch % replicas_);
  indices->resize(MicroBatchExamples(step, r));
  if (!shuffle_) {
    for (size_t i = 0; i < indices->size(); ++i) (*indices)[i] = begin + i;
    return;
  }
  const Permutation order(examples_, seed_, epoch(step));
  for (size_t i = 0; i < indices->size(); ++i) (*indices)[i] = order(begin + i);
}

}  // namespace tandem
