// Compiled with -O3 -march=x86-64-v3, and therefore includes no header with inline code: an inline
// function compiled here could be the copy that the linker keeps for the whole program.
//
// The formulas are update_step of keras/src/optimizers/{sgd,adam,adagrad}.py, Keras 3.15, where
// each call of `ops` rounds to float32. The build forbids contraction (-ffp-contract=off), and
// division and square root are the processor's correctly rounded ones, so the bits are Keras's on
// the CPU.
#include "common/optim/kernels.h"

// Elements do not depend on each other: `out` is `w` itself or does not overlap it. Without this
// promise the compilers check for overlap and take a scalar loop when `out` is `w`.
#if defined(__clang__)
#define TANDEM_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define TANDEM_VECTORIZE _Pragma("GCC ivdep")
#endif

namespace tandem::optim_internal {

void SgdKernel(size_t n, float rate, const float* g, const float* w, float* out) {
  TANDEM_VECTORIZE
  for (size_t i = 0; i < n; ++i) out[i] = w[i] - g[i] * rate;
}

void MomentumKernel(size_t n, float rate, float momentum, const float* g, const float* w,
                    float* out, float* m) {
  TANDEM_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const float next = m[i] * momentum - g[i] * rate;
    m[i] = next;
    out[i] = w[i] + next;
  }
}

void NesterovKernel(size_t n, float rate, float momentum, const float* g, const float* w,
                    float* out, float* m) {
  TANDEM_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const float step = g[i] * rate;
    const float next = m[i] * momentum - step;
    m[i] = next;
    out[i] = w[i] + (next * momentum - step);
  }
}

void AdamKernel(size_t n, AdamConstants c, const float* g, const float* w, float* out, float* m,
                float* v) {
  TANDEM_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const float next_m = m[i] + (g[i] - m[i]) * c.one_minus_beta_1;
    const float next_v = v[i] + (g[i] * g[i] - v[i]) * c.one_minus_beta_2;
    m[i] = next_m;
    v[i] = next_v;
    out[i] = w[i] - (next_m * c.alpha) / (__builtin_sqrtf(next_v) + c.epsilon);
  }
}

void AdagradKernel(size_t n, float rate, float epsilon, const float* g, const float* w, float* out,
                   float* accumulator) {
  TANDEM_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const float next = accumulator[i] + g[i] * g[i];
    accumulator[i] = next;
    out[i] = w[i] - (rate * g[i]) / __builtin_sqrtf(next + epsilon);
  }
}

}  // namespace tandem::optim_internal
