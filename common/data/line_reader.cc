#include "common/data/line_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

constexpr size_t kFirstBufferBytes = 256 << 10;

}  // namespace

LineReader::LineReader(std::unique_ptr<GzipReader> source)
    : source_(std::move(source)), buffer_(kFirstBufferBytes) {}

std::string LineReader::Place() const { return absl::StrCat(source_->path(), ":", line_number_); }

absl::StatusOr<bool> LineReader::Next(absl::string_view* line) {
  ++line_number_;
  size_t searched = 0;
  const char* newline = nullptr;
  while (true) {
    const char* begin = buffer_.data() + begin_;
    const size_t size = end_ - begin_;
    newline = static_cast<const char*>(std::memchr(begin + searched, '\n', size - searched));
    if (newline != nullptr || at_end_) break;
    searched = size;
    TANDEM_RETURN_IF_ERROR(Refill());
  }
  if (newline == nullptr && begin_ == end_) return false;
  const char* begin = buffer_.data() + begin_;
  const char* end = newline != nullptr ? newline : buffer_.data() + end_;
  begin_ = newline != nullptr ? newline + 1 - buffer_.data() : end_;
  if (end != begin && end[-1] == '\r') --end;
  *line = absl::string_view(begin, end - begin);
  return true;
}

absl::Status LineReader::Refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    if (end_ >= kMaxLineBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(Place(), ": expected a line of less than ", kMaxLineBytes, " bytes"));
    }
    buffer_.resize(buffer_.size() * 2);
  }
  const size_t room = buffer_.size() - end_;
  TANDEM_ASSIGN_OR_RETURN(const size_t got, source_->Read(buffer_.data() + end_, room));
  end_ += got;
  at_end_ = got < room;
  return absl::OkStatus();
}

}  // namespace tandem
