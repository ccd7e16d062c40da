// Softmax over the rows of a matrix. The same bits on every processor.
#ifndef TANDEM_COMMON_TENSOR_SOFTMAX_H_
#define TANDEM_COMMON_TENSOR_SOFTMAX_H_

#include <cstddef>

namespace tandem {

// y[r][c] = exp(x[r][c]) / sum over c. x and y may be the same array.
void Softmax(size_t rows, size_t columns, const float* x, float* y);
// dx = y (dy - sum over the row of y dy). dx and dy may be the same array.
void SoftmaxBackward(size_t rows, size_t columns, const float* y, const float* dy, float* dx);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_SOFTMAX_H_
