// Products too small to be worth a call to oneDNN.
#ifndef TANDEM_COMMON_TENSOR_SMALL_MATMUL_H_
#define TANDEM_COMMON_TENSOR_SMALL_MATMUL_H_

#include <cstddef>

namespace tandem {

// As MatMul (matmul.h). Element (i, j) is summed over k in order, so the bits are the same on every
// processor.
void SmallMatMul(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float* a,
                 const float* b, bool add, float* c);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_SMALL_MATMUL_H_
