// Compiled with -O3 -march=x86-64-v3, and therefore includes no header with inline code: an inline
// function compiled here could be the copy that the linker keeps for the whole program.
#include "common/tensor/reduce.h"

namespace tandem {
namespace {

// Loads of these types are legal at any address and see bytes of any origin.
typedef float UnalignedFloat __attribute__((aligned(1), may_alias));
typedef unsigned UnalignedBits __attribute__((aligned(1), may_alias));

// IEEE 754 binary32: NaN and infinity, and nothing else, have all exponent bits set.
constexpr unsigned kExponent = 0x7f800000;

// Floats between two looks at the result: long enough that the look costs nothing (the loop between
// has no branch), short enough that a range stays in the first-level cache for the exact search.
constexpr size_t kBlock = 2048;

bool BlockIsFinite(const UnalignedBits* bits, size_t n) {
  unsigned bad = 0;
  for (size_t i = 0; i < n; ++i) bad |= (bits[i] & kExponent) == kExponent ? ~0u : 0u;
  return bad == 0;
}

// Start of the first block that holds a non-finite value; n when there is none.
size_t FirstBadBlock(const UnalignedBits* bits, size_t n) {
  for (size_t start = 0; start < n; start += kBlock) {
    const size_t size = n - start < kBlock ? n - start : kBlock;
    if (!BlockIsFinite(bits + start, size)) return start;
  }
  return n;
}

}  // namespace

void AddInto(float* __restrict accumulator, const void* __restrict bytes, size_t n) {
  const auto* right = static_cast<const UnalignedFloat*>(bytes);
  for (size_t i = 0; i < n; ++i) accumulator[i] = accumulator[i] + right[i];
}

void AddFrom(const void* left, const void* right, float* __restrict out, size_t n) {
  const auto* a = static_cast<const UnalignedFloat*>(left);
  const auto* b = static_cast<const UnalignedFloat*>(right);
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

bool AllFinite(const void* bytes, size_t n) {
  return FirstBadBlock(static_cast<const UnalignedBits*>(bytes), n) == n;
}

size_t FirstNonFinite(const void* bytes, size_t n) {
  const auto* bits = static_cast<const UnalignedBits*>(bytes);
  size_t i = FirstBadBlock(bits, n);
  while (i < n && (bits[i] & kExponent) != kExponent) ++i;
  return i;
}

}  // namespace tandem
