// Compiled with -O3 -march=x86-64-v3, and therefore includes no header with inline code: an inline
// function compiled here could be the copy that the linker keeps for the whole program.
// (The template below is in an unnamed namespace.)
#include "common/tensor/reduce.h"

namespace tandem {
namespace {

// Element i of an array at any address, of any origin: both compilers make vector loads of it.
template <typename T>
inline T Load(const void* bytes, size_t i) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(bytes) + i * sizeof(T), sizeof(T));
  return value;
}

// IEEE 754 binary32: NaN and infinity, and nothing else, have all exponent bits set.
constexpr unsigned kExponent = 0x7f800000;

// Floats between two looks at the result: long enough that the look costs nothing (the loop between
// has no branch), short enough that a range stays in the first-level cache for the exact search.
constexpr size_t kBlock = 2048;

bool IsFinite(const void* bytes, size_t i) {
  return (Load<unsigned>(bytes, i) & kExponent) != kExponent;
}

bool RangeIsFinite(const void* bytes, size_t begin, size_t end) {
  unsigned bad = 0;
  for (size_t i = begin; i < end; ++i) bad |= IsFinite(bytes, i) ? 0u : ~0u;
  return bad == 0;
}

// Start of the first block that holds a non-finite value; n when there is none.
size_t FirstBadBlock(const void* bytes, size_t n) {
  for (size_t start = 0; start < n; start += kBlock) {
    const size_t end = n - start < kBlock ? n : start + kBlock;
    if (!RangeIsFinite(bytes, start, end)) return start;
  }
  return n;
}

}  // namespace

void AddInto(float* __restrict accumulator, const void* __restrict bytes, size_t n) {
  for (size_t i = 0; i < n; ++i) accumulator[i] = accumulator[i] + Load<float>(bytes, i);
}

void AddFrom(const void* left, const void* right, float* __restrict out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = Load<float>(left, i) + Load<float>(right, i);
}

bool AllFinite(const void* bytes, size_t n) { return FirstBadBlock(bytes, n) == n; }

size_t FirstNonFinite(const void* bytes, size_t n) {
  size_t i = FirstBadBlock(bytes, n);
  while (i < n && IsFinite(bytes, i)) ++i;
  return i;
}

}  // namespace tandem
