#include "tests/bench/plain_loops.h"

namespace tandem::bench {

void PlainSgd(size_t n, float rate, const float* __restrict g, const float* __restrict w,
              float* __restrict out) {
  for (size_t i = 0; i < n; ++i) out[i] = w[i] - g[i] * rate;
}

void PlainAdam(size_t n, float alpha, const float* __restrict g, const float* __restrict w,
               float* __restrict out, float* __restrict m, float* __restrict v) {
  for (size_t i = 0; i < n; ++i) {
    m[i] += (g[i] - m[i]) * 0.1f;
    v[i] += (g[i] * g[i] - v[i]) * 0.001f;
    out[i] = w[i] - m[i] * alpha / (__builtin_sqrtf(v[i]) + 1e-7f);
  }
}

void PlainAdagrad(size_t n, float rate, const float* __restrict g, const float* __restrict w,
                  float* __restrict out, float* __restrict a) {
  for (size_t i = 0; i < n; ++i) {
    a[i] += g[i] * g[i];
    out[i] = w[i] - rate * g[i] / __builtin_sqrtf(a[i] + 1e-7f);
  }
}

void PlainAdd(size_t n, float* __restrict accumulator, const float* __restrict right) {
  for (size_t i = 0; i < n; ++i) accumulator[i] += right[i];
}

size_t PlainCountNonFinite(size_t n, const float* values) {
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) count += values[i] - values[i] != 0;
  return count;
}

}  // namespace tandem::bench
