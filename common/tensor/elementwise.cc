#include "common/tensor/elementwise.h"

#include "common/tensor/scalar_math.h"

namespace tandem {

void Exp(size_t n, const float* x, float* y) {
  TANDEM_INDEPENDENT
  for (size_t i = 0; i < n; ++i) y[i] = ExpOf(x[i]);
}

void Log(size_t n, const float* x, float* y) {
  TANDEM_INDEPENDENT
  for (size_t i = 0; i < n; ++i) y[i] = LogOf(x[i]);
}

void Tanh(size_t n, const float* x, float* y) {
  TANDEM_INDEPENDENT
  for (size_t i = 0; i < n; ++i) y[i] = TanhOf(x[i]);
}

void Add(size_t n, const float* x, float* y) {
  TANDEM_INDEPENDENT
  for (size_t i = 0; i < n; ++i) y[i] += x[i];
}

void AddToRows(size_t rows, size_t columns, const float* row, float* matrix) {
  for (size_t r = 0; r < rows; ++r) Add(columns, row, matrix + r * columns);
}

void ColumnSums(size_t rows, size_t columns, const float* matrix, bool add, float* sums) {
  if (!add) {
    for (size_t c = 0; c < columns; ++c) sums[c] = 0;
  }
  for (size_t r = 0; r < rows; ++r) Add(columns, matrix + r * columns, sums);
}

float MaxAbs(size_t n, const float* x) {
  // Without their sign, floats are ordered as their bits are.
  uint32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = BitsOf(x[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return FromBits(largest);
}

}  // namespace tandem
