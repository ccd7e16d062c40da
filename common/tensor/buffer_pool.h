// Buffers of one size that come back when their last owner lets go: large memory is neither
// returned to the system nor faulted in again at every step.
#ifndef TANDEM_COMMON_TENSOR_BUFFER_POOL_H_
#define TANDEM_COMMON_TENSOR_BUFFER_POOL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/tensor/buffer.h"

namespace tandem {

// Thread-safe. Its buffers may outlive it.
class BufferPool {
 public:
  // Buffers of `size` floats.
  explicit BufferPool(size_t size) : size_(size), spare_(std::make_shared<Spare>()) {}

  // One that nobody uses; its contents are not initialized.
  std::shared_ptr<Buffer> Take() {
    std::unique_ptr<Buffer> buffer;
    {
      absl::MutexLock lock(&spare_->mutex);
      if (!spare_->buffers.empty()) {
        buffer = std::move(spare_->buffers.back());
        spare_->buffers.pop_back();
      }
    }
    if (buffer == nullptr) buffer = std::make_unique<Buffer>(size_);
    return std::shared_ptr<Buffer>(buffer.release(), [spare = spare_](Buffer* p) {
      std::unique_ptr<Buffer> returned(p);
      absl::MutexLock lock(&spare->mutex);
      spare->buffers.push_back(std::move(returned));
    });
  }

 private:
  struct Spare {
    absl::Mutex mutex;
    std::vector<std::unique_ptr<Buffer>> buffers ABSL_GUARDED_BY(mutex);
  };

  size_t size_;
  std::shared_ptr<Spare> spare_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_BUFFER_POOL_H_
