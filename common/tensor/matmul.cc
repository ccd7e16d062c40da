#include "common/tensor/matmul.h"

#include <dnnl.h>
#include <omp.h>

#include <cstdio>
#include <cstdlib>

#include "common/tensor/small_matmul.h"
#include "common/tensor/vector_matmul.h"

namespace tandem {
namespace {

// A call to oneDNN costs about a microsecond before the first multiplication.
constexpr size_t kSmallProducts = 4096;

// oneDNN asks OpenMP for its threads, and OpenMP remembers the answer by calling thread.
void UseOneThread() {
  thread_local const bool once = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

void MatMul(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k,
            const float* a, const float* b, Output output, float* c) {
  const bool ta = transpose_a == Transpose::kYes, tb = transpose_b == Transpose::kYes;
  if (m * n * k <= kSmallProducts) {
    SmallMatMul(ta, tb, m, n, k, a, b, output == Output::kAdd, c);
    return;
  }
  // A vector is the same transposed; a matrix is not.
  if (k == 1) return OuterProduct(m, n, a, b, output == Output::kAdd, c);
  if (n == 1 && !ta) return MatVec(m, k, a, b, output == Output::kAdd, c);
  if (m == 1 && tb) return MatVec(n, k, b, a, output == Output::kAdd, c);
  if (m == 1) return VecMat(n, k, a, b, output == Output::kAdd, c);
  UseOneThread();
  const dnnl_status_t status =
      dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, ta ? m : k, b, tb ? k : n,
                 output == Output::kAdd ? 1.0f : 0.0f, c, n);
  if (status != dnnl_success) {
    // Only out of memory, or a bug of ours.
    std::fprintf(stderr, "dnnl_sgemm of %zu x %zu x %zu failed: status %d\n", m, n, k, status);
    std::abort();
  }
}

}  // namespace tandem
