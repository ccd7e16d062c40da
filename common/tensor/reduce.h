// Sums and checks of float32 arrays as they arrive from the network: byte ranges of any alignment,
// little-endian, `n` counted in floats. All run at the speed of memory, on one thread.
//
// Each element is one IEEE addition in the default rounding, so how an array is cut into ranges
// does not show in the bits. They are compiled for AVX2 (see cpu_isa.h). With n = 0 no pointer is
// read.
#ifndef TANDEM_COMMON_TENSOR_REDUCE_H_
#define TANDEM_COMMON_TENSOR_REDUCE_H_

#include <cstddef>

namespace tandem {

// accumulator[i] = accumulator[i] + bytes[i]: the accumulator is the left child of the reduction
// tree, `bytes` the right one. The ranges do not overlap.
void AddInto(float* accumulator, const void* bytes, size_t n);

// out[i] = left[i] + right[i]. `out` overlaps neither; `left` and `right` may be the same.
void AddFrom(const void* left, const void* right, float* out, size_t n);

// No NaN and no infinity among the n floats. Looks at exponents only, so denormal numbers cost
// nothing and no floating-point flag is raised.
bool AllFinite(const void* bytes, size_t n);

// Index of the first NaN or infinity; n when there is none. As fast as AllFinite.
size_t FirstNonFinite(const void* bytes, size_t n);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_REDUCE_H_
