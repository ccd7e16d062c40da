#include "common/tensor/softmax.h"

#include "common/tensor/row_math.h"

namespace tandem {

void Softmax(size_t rows, size_t columns, const float* x, float* y) {
  ExpOfShiftedRows(rows, columns, x, y);
  for (size_t r = 0; r < rows; ++r) {
    float* row = y + r * columns;
    const float sum = RowSum(columns, row);
    for (size_t c = 0; c < columns; ++c) row[c] = row[c] / sum;
  }
}

void SoftmaxBackward(size_t rows, size_t columns, const float* y, const float* dy, float* dx) {
  for (size_t r = 0; r < rows; ++r) {
    const float* value = y + r * columns;
    const float* in = dy + r * columns;
    float* out = dx + r * columns;
    const float dot = RowDot(columns, value, in);
    TANDEM_INDEPENDENT
    for (size_t c = 0; c < columns; ++c) out[c] = value[c] * (in[c] - dot);
  }
}

}  // namespace tandem
