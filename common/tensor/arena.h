// Scratch memory that is taken again and again in the same or nearly the same pattern.
#ifndef TANDEM_COMMON_TENSOR_ARENA_H_
#define TANDEM_COMMON_TENSOR_ARENA_H_

#include <cstddef>
#include <vector>

#include "common/tensor/buffer.h"

namespace tandem {

// Hands out aligned floats until Reset, which takes them all back and keeps the memory. A pattern
// that has been seen once costs no heap allocation. Not thread-safe.
class Arena {
 public:
  // Not initialized, valid until Reset.
  float* Allocate(size_t size);
  void Reset();
  // Floats held, used or not.
  size_t capacity() const;

 private:
  std::vector<Buffer> blocks_;  // The last one is in use, the others are full.
  size_t used_ = 0;             // Of the last block.
};

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_ARENA_H_
