// Reductions along rows in a fixed shape: eight running values, one for each position modulo eight,
// then a tree over them. Vector code, and the same bits on every processor. Only for kernel files,
// as scalar_math.h.
#ifndef TANDEM_COMMON_TENSOR_ROW_MATH_H_
#define TANDEM_COMMON_TENSOR_ROW_MATH_H_

#include <stddef.h>

#include "common/tensor/scalar_math.h"

namespace tandem {
namespace {

constexpr size_t kLanes = 8;

inline float Fold(const float* lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

inline float RowSum(size_t n, const float* x) {
  float lane[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] += x[i + j];
  }
  for (size_t j = 0; i + j < n; ++j) lane[j] += x[i + j];
  return Fold(lane);
}

inline float RowDot(size_t n, const float* x, const float* y) {
  float lane[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] = __builtin_fmaf(x[i + j], y[i + j], lane[j]);
  }
  for (size_t j = 0; i + j < n; ++j) lane[j] = __builtin_fmaf(x[i + j], y[i + j], lane[j]);
  return Fold(lane);
}

// A NaN may or may not be passed over: the caller's sum of exponentials has it anyway.
inline float RowMax(size_t n, const float* x) {
  float lane[kLanes];
  for (size_t j = 0; j < kLanes; ++j) lane[j] = -kInfinity;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  }
  float largest = -kInfinity;
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  for (size_t j = 0; j < kLanes; ++j) largest = lane[j] > largest ? lane[j] : largest;
  return largest;
}

// y[r][c] = exp(x[r][c] - max of row r). The exponentials of all rows are one loop: short rows
// would leave the vectors half empty.
inline void ExpOfShiftedRows(size_t rows, size_t columns, const float* x, float* y) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = x + r * columns;
    const float largest = RowMax(columns, row);
    TANDEM_INDEPENDENT
    for (size_t c = 0; c < columns; ++c) y[r * columns + c] = row[c] - largest;
  }
  TANDEM_INDEPENDENT
  for (size_t i = 0; i < rows * columns; ++i) y[i] = ExpOf(y[i]);
}

}  // namespace
}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_ROW_MATH_H_
