#include "common/data/gzip_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

constexpr size_t kInputBytes = 64 << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;  // The window bits of inflateInit2 that mean gzip.

}  // namespace

absl::StatusOr<std::unique_ptr<GzipReader>> GzipReader::Open(const std::string& path) {
  // O_NONBLOCK: without it, opening a pipe that nobody writes to would wait for ever.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  auto reader = absl::WrapUnique(new GzipReader(path, fd));
  TANDEM_RETURN_IF_ERROR(reader->Start());
  return reader;
}

GzipReader::GzipReader(std::string path, int fd)
    : path_(std::move(path)), fd_(fd), input_(kInputBytes) {}

GzipReader::~GzipReader() {
  if (gzip_) inflateEnd(&stream_);
  close(fd_);
}

absl::Status GzipReader::Start() {
  struct stat info;
  if (fstat(fd_, &info) != 0) return absl::ErrnoToStatus(errno, path_);
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": a folder: expected a file"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": a pipe, socket or device: expected a regular file"));
  }
  TANDEM_RETURN_IF_ERROR(Fill());
  if (stream_.avail_in < 2 || std::memcmp(stream_.next_in, "\x1f\x8b", 2) != 0) {
    return absl::OkStatus();
  }
  if (const int code = inflateInit2(&stream_, kGzipOnly); code != Z_OK) return InflateError(code);
  gzip_ = true;
  return absl::OkStatus();
}

absl::Status GzipReader::Fill() {
  ssize_t got;
  do {
    got = read(fd_, input_.data(), input_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return absl::ErrnoToStatus(errno, path_);
  file_offset_ += got;
  stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
  stream_.avail_in = static_cast<uInt>(got);
  return absl::OkStatus();
}

absl::StatusOr<size_t> GzipReader::Read(void* out, size_t size) {
  return gzip_ ? ReadGzip(static_cast<char*>(out), size) : ReadPlain(static_cast<char*>(out), size);
}

absl::StatusOr<size_t> GzipReader::ReadPlain(char* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (stream_.avail_in == 0) {
      TANDEM_RETURN_IF_ERROR(Fill());
      if (stream_.avail_in == 0) break;
    }
    const size_t part = std::min<size_t>(size - done, stream_.avail_in);
    std::memcpy(out + done, stream_.next_in, part);
    stream_.next_in += part;
    stream_.avail_in -= part;
    done += part;
  }
  return done;
}

absl::StatusOr<size_t> GzipReader::ReadGzip(char* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (stream_.avail_in == 0) {
      TANDEM_RETURN_IF_ERROR(Fill());
      if (stream_.avail_in == 0 && between_members_) break;
      if (stream_.avail_in == 0) {
        return absl::InvalidArgumentError(absl::StrCat(path_, ": cut short at byte ", file_offset_,
                                                       ": expected the rest of the gzip data"));
      }
    }
    if (between_members_) {
      if (const int code = inflateReset(&stream_); code != Z_OK) return InflateError(code);
      between_members_ = false;
    }
    const size_t part = std::min<size_t>(size - done, 1 << 30);  // avail_out has 32 bits.
    stream_.next_out = reinterpret_cast<Bytef*>(out + done);
    stream_.avail_out = static_cast<uInt>(part);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    done += part - stream_.avail_out;
    if (code == Z_STREAM_END) {
      between_members_ = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return InflateError(code);
    }
  }
  return done;
}

absl::Status GzipReader::InflateError(int code) const {
  if (code == Z_MEM_ERROR) {
    return absl::ResourceExhaustedError(absl::StrCat(path_, ": no memory left to decompress it"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": damaged near byte ", file_offset_ - stream_.avail_in, " (",
                   stream_.msg != nullptr ? stream_.msg : zError(code), "): expected gzip data"));
}

}  // namespace tandem
