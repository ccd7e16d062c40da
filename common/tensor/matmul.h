// Matrix products: float32, row-major, one thread.
#ifndef TANDEM_COMMON_TENSOR_MATMUL_H_
#define TANDEM_COMMON_TENSOR_MATMUL_H_

#include <cstddef>

namespace tandem {

enum class Transpose { kNo, kYes };
// kWrite: C = the product. kAdd: C += the product.
enum class Output { kWrite, kAdd };

// C[m,n] = op(A)[m,k] op(B)[k,n]. A is stored [m,k], or [k,m] when transposed; B likewise. Nothing
// overlaps C. The bits are a function of the shapes, the values and the instruction set
// (cpu_isa.h). Computes in the calling thread only; thread-safe.
void MatMul(Transpose transpose_a, Transpose transpose_b, size_t m, size_t n, size_t k,
            const float* a, const float* b, Output output, float* c);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_MATMUL_H_
