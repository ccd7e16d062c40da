// Float memory that several owners share, aligned for vector loads.
#ifndef TANDEM_COMMON_TENSOR_BUFFER_H_
#define TANDEM_COMMON_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace tandem {

constexpr size_t kBufferAlignment = 64;  // A cache line, and an AVX-512 register.

// `size` floats, aligned to kBufferAlignment, not initialized. Movable, not copyable.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size)
      : data_(size == 0 ? nullptr
                        : static_cast<float*>(::operator new[](
                              size * sizeof(float), std::align_val_t{kBufferAlignment}))),
        size_(size) {}

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(float); }

 private:
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t{kBufferAlignment}); }
  };
  std::unique_ptr<float[], Free> data_;
  size_t size_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_BUFFER_H_
