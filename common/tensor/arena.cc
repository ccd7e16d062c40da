#include "common/tensor/arena.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

constexpr size_t kAlignmentFloats = kBufferAlignment / sizeof(float);
constexpr size_t kFirstBlockFloats = 1024;

}  // namespace

float* Arena::Allocate(size_t size) {
  size = (size + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
  if (blocks_.empty() || blocks_.back().size() - used_ < size) {
    blocks_.emplace_back(std::max({size, kFirstBlockFloats, capacity()}));
    used_ = 0;
  }
  float* result = blocks_.back().data() + used_;
  used_ += size;
  return result;
}

void Arena::Reset() {
  // One block as large as all together: the same pattern then fits without a seam.
  if (blocks_.size() > 1) {
    const size_t total = capacity();
    blocks_.clear();
    blocks_.emplace_back(total);
  }
  used_ = 0;
}

size_t Arena::capacity() const {
  size_t total = 0;
  for (const Buffer& block : blocks_) total += block.size();
  return total;
}

}  // namespace tandem
