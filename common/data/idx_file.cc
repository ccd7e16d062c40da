#include "common/data/idx_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/data/gzip_reader.h"

namespace tandem {
namespace {

constexpr uint32_t kMagic = 0x00000800;  // Of unsigned bytes; the number of dimensions is added.
constexpr uint32_t kMaxDimensions = 8;   // More than any layer takes; so a header has a limit.
constexpr size_t kBlockBytes = 128 << 10;

absl::Status Invalid(const std::string& path, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", message));
}

// The next big-endian number of the header, of which `*offset` bytes have been read.
absl::StatusOr<uint32_t> ReadNumber(GzipReader* source, uint64_t* offset) {
  std::array<uint8_t, 4> bytes;
  TANDEM_ASSIGN_OR_RETURN(const size_t got, source->Read(bytes.data(), bytes.size()));
  *offset += got;
  if (*offset == 0) return Invalid(source->path(), "empty: expected an IDX file");
  if (got < bytes.size()) {
    return Invalid(source->path(),
                   absl::StrCat("cut short after ", *offset, " bytes: expected an IDX header"));
  }
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

absl::Status CheckMagic(const std::string& path, uint32_t magic) {
  const uint32_t dimensions = magic & 0xFF;
  if ((magic & ~uint32_t{0xFF}) == kMagic && dimensions >= 1 && dimensions <= kMaxDimensions) {
    return absl::OkStatus();
  }
  const auto hex = [](uint32_t number) { return absl::Hex(number, absl::kZeroPad8); };
  return Invalid(path, absl::StrCat("begins with 0x", hex(magic),
                                    ": expected the IDX magic number of unsigned bytes, 0x",
                                    hex(kMagic + 1), " (labels) or 0x", hex(kMagic + 2), " to 0x",
                                    hex(kMagic + kMaxDimensions), " (images)"));
}

}  // namespace

std::string ShapeText(absl::Span<const uint64_t> dimensions) {
  return absl::StrJoin(dimensions, " x ");
}

absl::StatusOr<IdxHeader> ReadIdxHeader(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<GzipReader> source, GzipReader::Open(path));
  IdxHeader header = {.path = path, .data_bytes = 1};
  TANDEM_ASSIGN_OR_RETURN(const uint32_t magic, ReadNumber(source.get(), &header.header_bytes));
  TANDEM_RETURN_IF_ERROR(CheckMagic(path, magic));
  bool overflow = false;
  for (uint32_t i = 0; i < (magic & 0xFF); ++i) {
    TANDEM_ASSIGN_OR_RETURN(const uint64_t dimension,
                            ReadNumber(source.get(), &header.header_bytes));
    header.dimensions.push_back(dimension);
    overflow |= __builtin_mul_overflow(header.data_bytes, dimension, &header.data_bytes);
  }
  // A product with a zero in it is no overflow to speak of, whatever its other factors.
  if (std::count(header.dimensions.begin(), header.dimensions.end(), 0) > 0) {
    return Invalid(path, absl::StrCat("declares ", ShapeText(header.dimensions),
                                      ": expected dimensions of at least 1"));
  }
  if (overflow) {
    return Invalid(path, absl::StrCat("declares ", ShapeText(header.dimensions),
                                      " bytes: expected a size below 2^64"));
  }
  return header;
}

absl::Status ReadIdxData(const IdxHeader& header,
                         absl::FunctionRef<void(absl::Span<const uint8_t>)> consume) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<GzipReader> source, GzipReader::Open(header.path));
  std::vector<uint8_t> block(kBlockBytes);
  TANDEM_RETURN_IF_ERROR(source->Read(block.data(), header.header_bytes).status());
  uint64_t left = header.data_bytes;
  while (left > 0) {
    const size_t part = std::min<uint64_t>(left, block.size());
    TANDEM_ASSIGN_OR_RETURN(const size_t got, source->Read(block.data(), part));
    consume(absl::MakeConstSpan(block.data(), got));
    left -= got;
    if (got < part) {
      return Invalid(header.path, absl::StrCat("cut short: expected ", ShapeText(header.dimensions),
                                               " bytes after the ", header.header_bytes,
                                               " of the header, found ", header.data_bytes - left));
    }
  }
  // This read also makes gzip compare its check sum.
  TANDEM_ASSIGN_OR_RETURN(const size_t extra, source->Read(block.data(), 1));
  if (extra == 0) return absl::OkStatus();
  return Invalid(header.path,
                 absl::StrCat("expected its end after the declared ", ShapeText(header.dimensions),
                              " bytes, at offset ", header.header_bytes + header.data_bytes,
                              ", found more bytes"));
}

}  // namespace tandem
