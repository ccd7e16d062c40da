#include "common/tensor/vector_matmul.h"

namespace tandem {
namespace {

constexpr size_t kLanes = 8, kParts = 4, kBlock = kLanes * kParts;

using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

Lanes Load(const float* p) {
  Lanes v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

float Dot(size_t k, const float* a, const float* x) {
  Lanes sum[kParts] = {};
  size_t l = 0;
  for (; l + kBlock <= k; l += kBlock) {
    for (size_t part = 0; part < kParts; ++part) {
      sum[part] += Load(a + l + part * kLanes) * Load(x + l + part * kLanes);
    }
  }
  for (; l + kLanes <= k; l += kLanes) sum[0] += Load(a + l) * Load(x + l);
  const Lanes all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  float total = ((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7]));
  for (; l < k; ++l) total += a[l] * x[l];
  return total;
}

}  // namespace

void MatVec(size_t m, size_t k, const float* a, const float* x, bool add, float* y) {
  for (size_t i = 0; i < m; ++i) {
    const float dot = Dot(k, a + i * k, x);
    y[i] = add ? y[i] + dot : dot;
  }
}

void VecMat(size_t n, size_t k, const float* x, const float* b, bool add, float* y) {
  if (!add) {
    for (size_t j = 0; j < n; ++j) y[j] = 0;
  }
  size_t l = 0;
  for (; l + 4 <= k; l += 4) {
    const float* rows = b + l * n;
    for (size_t j = 0; j < n; ++j) {
      y[j] += ((x[l] * rows[j] + x[l + 1] * rows[n + j]) + x[l + 2] * rows[2 * n + j]) +
              x[l + 3] * rows[3 * n + j];
    }
  }
  for (; l < k; ++l) {
    for (size_t j = 0; j < n; ++j) y[j] += x[l] * b[l * n + j];
  }
}

void OuterProduct(size_t m, size_t n, const float* a, const float* b, bool add, float* c) {
  // The longer side in the inner loop; with n = 1 both are contiguous.
  if (n == 1) {
    const float factor = b[0];
    if (add) {
      for (size_t i = 0; i < m; ++i) c[i] += a[i] * factor;
    } else {
      for (size_t i = 0; i < m; ++i) c[i] = a[i] * factor;
    }
    return;
  }
  for (size_t i = 0; i < m; ++i) {
    float* row = c + i * n;
    if (add) {
      for (size_t j = 0; j < n; ++j) row[j] += a[i] * b[j];
    } else {
      for (size_t j = 0; j < n; ++j) row[j] = a[i] * b[j];
    }
  }
}

}  // namespace tandem
