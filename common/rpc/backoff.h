// How long to wait before the next attempt: exponential, with jitter, so that many clients of one
// server that came back do not all arrive at once.
#ifndef TANDEM_COMMON_RPC_BACKOFF_H_
#define TANDEM_COMMON_RPC_BACKOFF_H_

#include <algorithm>
#include <cstdint>

#include "common/base/random.h"

namespace tandem {

struct BackoffOptions {
  int64_t first_ms = 20;
  int64_t max_ms = 2000;
};

// Pure: the jitter is a function of the seed and the attempt's number. Not thread-safe.
class Backoff {
 public:
  using Options = BackoffOptions;
  explicit Backoff(uint64_t seed, Options options = Options()) : seed_(seed), options_(options) {}

  // The wait before the next attempt: uniform in [half, whole] of first_ms * 2^k, at most max_ms.
  int64_t NextMs() {
    const int64_t whole = std::min(options_.max_ms, options_.first_ms << std::min(failures_, 16));
    const uint32_t bits = RandomBits(seed_, Purpose::kJitter, draws_++, 0)[0];
    ++failures_;
    return whole / 2 + static_cast<int64_t>(static_cast<double>(ToUniform(bits)) *
                                            static_cast<double>(whole - whole / 2 + 1));
  }
  // After a success: begin again with first_ms.
  void Reset() { failures_ = 0; }

 private:
  uint64_t seed_;
  Options options_;
  int failures_ = 0;
  uint64_t draws_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_BACKOFF_H_
