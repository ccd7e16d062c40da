#include "common/tensor/small_matmul.h"

namespace tandem {

void SmallMatMul(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float* a,
                 const float* b, bool add, float* c) {
  const size_t a_row = transpose_a ? 1 : k, a_column = transpose_a ? m : 1;
  if (!add) {
    for (size_t i = 0; i < m * n; ++i) c[i] = 0;
  }
  if (transpose_b) {
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < n; ++j) {
        float sum = c[i * n + j];
        for (size_t l = 0; l < k; ++l) {
          sum = __builtin_fmaf(a[i * a_row + l * a_column], b[j * k + l], sum);
        }
        c[i * n + j] = sum;
      }
    }
    return;
  }
  for (size_t i = 0; i < m; ++i) {
    for (size_t l = 0; l < k; ++l) {
      const float factor = a[i * a_row + l * a_column];
      for (size_t j = 0; j < n; ++j) {
        c[i * n + j] = __builtin_fmaf(factor, b[l * n + j], c[i * n + j]);
      }
    }
  }
}

}  // namespace tandem
