// The bytes of a file, in order, decompressed where it is gzip.
#ifndef TANDEM_COMMON_DATA_GZIP_READER_H_
#define TANDEM_COMMON_DATA_GZIP_READER_H_

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// A file that begins with 1f 8b is gzip (of one or several members), any other is read as it is:
// names and endings do not count. Memory does not grow with the file. One thread at a time.
class GzipReader {
 public:
  // NOT_FOUND for a missing file, INVALID_ARGUMENT for a folder, a pipe or a device.
  static absl::StatusOr<std::unique_ptr<GzipReader>> Open(const std::string& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Fills `out` and returns how much of it: less than `size` only where the contents end. By then
  // the check sums of gzip have been compared. INVALID_ARGUMENT, naming the file and the place, for
  // gzip that is cut short, damaged or followed by anything else.
  absl::StatusOr<size_t> Read(void* out, size_t size);

  const std::string& path() const { return path_; }

 private:
  GzipReader(std::string path, int fd);

  absl::Status Start();
  absl::Status Fill();
  absl::StatusOr<size_t> ReadPlain(char* out, size_t size);
  absl::StatusOr<size_t> ReadGzip(char* out, size_t size);
  absl::Status InflateError(int code) const;

  const std::string path_;
  const int fd_;
  std::vector<char> input_;
  uint64_t file_offset_ = 0;  // Where the bytes after those in input_ are in the file.
  bool gzip_ = false;
  bool between_members_ = false;
  // next_in and avail_in are what is left of input_, for plain files, too.
  z_stream stream_ = {};
};

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_GZIP_READER_H_
