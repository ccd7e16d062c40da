// Tensor bytes where the network put them: ranges of memory with their owners, laid end to end.
// Nothing is copied to make one.
#ifndef TANDEM_COMMON_RPC_PAYLOAD_H_
#define TANDEM_COMMON_RPC_PAYLOAD_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace tandem {

// Not thread-safe to change; the bytes themselves are never changed through it.
class Payload {
 public:
  struct Piece {
    const char* data;
    size_t size;  // Not 0.
    std::shared_ptr<const void> owner;
  };

  Payload() = default;
  // One piece of `size` bytes, kept alive by `owner`.
  Payload(const void* data, size_t size, std::shared_ptr<const void> owner) {
    Append(data, size, std::move(owner));
  }

  void Append(const void* data, size_t size, std::shared_ptr<const void> owner) {
    if (size == 0) return;
    pieces_.push_back({static_cast<const char*>(data), size, std::move(owner)});
    bytes_ += size;
  }
  void Append(Payload other) {
    for (Piece& piece : other.pieces_) pieces_.push_back(std::move(piece));
    bytes_ += other.bytes_;
  }

  size_t bytes() const { return bytes_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  // Copies all bytes to `out`.
  void CopyTo(void* out) const {
    char* to = static_cast<char*>(out);
    for (const Piece& piece : pieces_) {
      std::memcpy(to, piece.data, piece.size);
      to += piece.size;
    }
  }

 private:
  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
};

// Walks a payload as float32 values, in runs that lie in one piece. A value that two pieces share
// comes as a run of one. The payload may grow between calls.
class FloatCursor {
 public:
  explicit FloatCursor(const Payload* payload) : payload_(payload) {}

  // The next run of at most `most` (> 0) values: *count of them at the returned address, of any
  // alignment, valid until the next call. *count is 0 when less than one whole value is left.
  const void* Next(size_t most, size_t* count) {
    const auto& pieces = payload_->pieces();
    while (piece_ < pieces.size() && offset_ == pieces[piece_].size) ++piece_, offset_ = 0;
    *count = 0;
    if (piece_ == pieces.size()) return nullptr;
    const size_t whole = (pieces[piece_].size - offset_) / sizeof(float);
    if (whole == 0) return Stitch(count);
    *count = whole < most ? whole : most;
    const void* run = pieces[piece_].data + offset_;
    offset_ += *count * sizeof(float);
    return run;
  }

 private:
  const void* Stitch(size_t* count) {
    const auto& pieces = payload_->pieces();
    size_t piece = piece_, offset = offset_, have = 0;
    while (have < sizeof(float)) {
      if (piece == pieces.size()) return nullptr;
      if (offset == pieces[piece].size) {
        ++piece, offset = 0;
        continue;
      }
      stitched_[have++] = pieces[piece].data[offset++];
    }
    piece_ = piece, offset_ = offset;
    *count = 1;
    return stitched_;
  }

  const Payload* payload_;
  size_t piece_ = 0, offset_ = 0;
  char stitched_[sizeof(float)] = {};
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_PAYLOAD_H_
