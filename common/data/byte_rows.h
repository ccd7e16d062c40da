// A growing table of rows of bytes, all of one width.
#ifndef TANDEM_COMMON_DATA_BYTE_ROWS_H_
#define TANDEM_COMMON_DATA_BYTE_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace tandem {

// Kept in chunks of about 1 MiB, so that it grows with what is appended, without ever holding a
// second copy, and whatever size was announced. Thread-safe once nothing is appended any more.
class ByteRows {
 public:
  // `row_bytes` at least 1.
  explicit ByteRows(uint64_t row_bytes) : row_bytes_(row_bytes) {
    while ((row_bytes_ << (shift_ + 1)) <= kChunkBytes) ++shift_;
  }

  // Bytes of rows end to end; a row may come in parts.
  void Append(absl::Span<const uint8_t> bytes) {
    while (!bytes.empty()) {
      if (chunks_.empty() || chunks_.back().size() == chunk_bytes()) {
        chunks_.emplace_back().reserve(std::min(chunk_bytes(), kChunkBytes));
      }
      std::vector<uint8_t>& chunk = chunks_.back();
      const auto part = bytes.first(std::min<uint64_t>(bytes.size(), chunk_bytes() - chunk.size()));
      chunk.insert(chunk.end(), part.begin(), part.end());
      bytes.remove_prefix(part.size());
    }
  }

  // The `row_bytes` of row `i`, which must have been appended.
  const uint8_t* row(uint64_t i) const {
    const uint64_t in_chunk = i & ((uint64_t{1} << shift_) - 1);
    return chunks_[i >> shift_].data() + in_chunk * row_bytes_;
  }

 private:
  static constexpr uint64_t kChunkBytes = 1 << 20;

  uint64_t chunk_bytes() const { return row_bytes_ << shift_; }

  uint64_t row_bytes_;
  int shift_ = 0;  // A chunk has 2^shift_ rows.
  std::vector<std::vector<uint8_t>> chunks_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_BYTE_ROWS_H_
