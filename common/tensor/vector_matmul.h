// Products in which one side is a vector: limited by memory, where a general product spends its
// time on packing. Sums run in an order of their own that does not depend on the processor.
#ifndef TANDEM_COMMON_TENSOR_VECTOR_MATMUL_H_
#define TANDEM_COMMON_TENSOR_VECTOR_MATMUL_H_

#include <cstddef>

namespace tandem {

// y[i] = sum over l of a[i][l] * x[l] (+ y[i] when `add`): a is row-major [m, k]. Each row is
// summed in 32 interleaved parts, which are then added in pairs.
void MatVec(size_t m, size_t k, const float* a, const float* x, bool add, float* y);

// y[j] = sum over l of x[l] * b[l][j] (+ y[j] when `add`): b is row-major [k, n]. Four rows at a
// time, each four added in order before they are added to y[j].
void VecMat(size_t n, size_t k, const float* x, const float* b, bool add, float* y);

// c[i][j] = a[i] * b[j] (+ c[i][j] when `add`): c is row-major [m, n].
void OuterProduct(size_t m, size_t n, const float* a, const float* b, bool add, float* c);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_VECTOR_MATMUL_H_
