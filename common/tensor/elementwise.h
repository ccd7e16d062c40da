// Element-wise kernels and reductions over float arrays: the same bits on every processor, in one
// thread. Arrays may be the same one, but may not overlap otherwise.
#ifndef TANDEM_COMMON_TENSOR_ELEMENTWISE_H_
#define TANDEM_COMMON_TENSOR_ELEMENTWISE_H_

#include <cstddef>

namespace tandem {

// y[i] = exp x[i], log x[i], tanh x[i]: within 1.1, 1 and 2.5 ulp.
void Exp(size_t n, const float* x, float* y);
void Log(size_t n, const float* x, float* y);
void Tanh(size_t n, const float* x, float* y);

// y[i] += x[i].
void Add(size_t n, const float* x, float* y);
// matrix[r][c] += row[c].
void AddToRows(size_t rows, size_t columns, const float* row, float* matrix);
// sums[c] = the matrix's column c, rows added in order; written, or added to what is there.
void ColumnSums(size_t rows, size_t columns, const float* matrix, bool add, float* sums);

// The largest |x[i]|; a NaN counts as larger than infinity. 0 when n is 0.
float MaxAbs(size_t n, const float* x);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_ELEMENTWISE_H_
