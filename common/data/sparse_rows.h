// A growing table of sparse rows with a label each.
#ifndef TANDEM_COMMON_DATA_SPARSE_ROWS_H_
#define TANDEM_COMMON_DATA_SPARSE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace tandem {

// Compressed sparse rows in chunks of a fixed number of rows, so that it grows without ever holding
// a second copy. Thread-safe once nothing is changed any more.
class SparseRows {
 public:
  struct Row {
    float label;
    absl::Span<const uint32_t> columns;
    absl::Span<const float> values;  // As many.
  };

  void Append(float label, const std::vector<uint32_t>& columns, const std::vector<float>& values) {
    if (chunks_.empty() || chunks_.back().labels.size() == kChunkRows) {
      if (!chunks_.empty()) chunks_.back().Trim();
      chunks_.emplace_back();
    }
    Chunk& chunk = chunks_.back();
    chunk.labels.push_back(label);
    chunk.columns.insert(chunk.columns.end(), columns.begin(), columns.end());
    chunk.values.insert(chunk.values.end(), values.begin(), values.end());
    chunk.row_begin.push_back(chunk.columns.size());
  }

  // Row `i`, which must have been appended.
  Row row(uint64_t i) const {
    const Chunk& chunk = chunks_[i / kChunkRows];
    const size_t r = i % kChunkRows, begin = chunk.row_begin[r];
    const size_t size = chunk.row_begin[r + 1] - begin;
    return {
        chunk.labels[r], {chunk.columns.data() + begin, size}, {chunk.values.data() + begin, size}};
  }

  // Gives every label `from` the value `to`.
  void ReplaceLabel(float from, float to) {
    for (Chunk& chunk : chunks_) {
      for (float& label : chunk.labels) label = label == from ? to : label;
    }
  }

 private:
  static constexpr size_t kChunkRows = 4096;

  struct Chunk {
    std::vector<float> labels;
    std::vector<size_t> row_begin = {0};  // Where rows begin in the two below, and the end.
    std::vector<uint32_t> columns;
    std::vector<float> values;

    void Trim() {
      columns.shrink_to_fit();
      values.shrink_to_fit();
    }
  };

  std::vector<Chunk> chunks_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_SPARSE_ROWS_H_
