// A text file line by line.
#ifndef TANDEM_COMMON_DATA_LINE_READER_H_
#define TANDEM_COMMON_DATA_LINE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/data/gzip_reader.h"

namespace tandem {

// Lines end in "\n" or "\r\n"; the last one may lack its end. Memory grows with the longest line
// only. One thread at a time.
class LineReader {
 public:
  // Lines are shorter. One that is not is an error: a binary file may have no line end at all.
  static constexpr size_t kMaxLineBytes = 16 << 20;

  explicit LineReader(std::unique_ptr<GzipReader> source);

  // The next line without its end into *line, valid until the next call; false after the last one.
  absl::StatusOr<bool> Next(absl::string_view* line);

  // `PATH:LINE` of the line that Next gave last.
  std::string Place() const;

 private:
  absl::Status Refill();

  std::unique_ptr<GzipReader> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // What is in buffer_ and has not been given yet.
  bool at_end_ = false;         // The source has no more.
  uint64_t line_number_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_LINE_READER_H_
