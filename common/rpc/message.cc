#include "common/rpc/message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"

namespace tandem {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// Keeps what gRPC sends alive. gRPC may let go of it on a thread of its own; what orders that after
// the lending is in gRPC, which a thread sanitizer does not see, so it is said here once more.
class Lent {
 public:
  static Lent* Lend(std::shared_ptr<const void> owner) {
    auto* lent = new Lent(std::move(owner));
    lent->lent_.store(true, std::memory_order_release);
    return lent;
  }
  static void Return(void* pointer) {
    auto* lent = static_cast<Lent*>(pointer);
    if (lent->lent_.load(std::memory_order_acquire)) delete lent;
  }

 private:
  explicit Lent(std::shared_ptr<const void> owner) : owner_(std::move(owner)) {}

  std::shared_ptr<const void> owner_;
  std::atomic<bool> lent_ = false;
};

constexpr uint32_t kPayloadTag = (kPayloadField << 3) | 2;  // Length-delimited.
constexpr size_t kMaxPrefix = 16;                           // A tag and a length.

// Where the payload begins and how long it is; both 0 when there is none, then `header_bytes` is
// all.
struct Layout {
  size_t header_bytes = 0, payload_begin = 0, payload_bytes = 0;
};

// Reads slices where they lie.
class SliceStream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit SliceStream(const std::vector<grpc::Slice>* slices) : slices_(slices) {}

  bool Next(const void** data, int* size) override {
    while (slice_ < slices_->size() && offset_ == (*slices_)[slice_].size()) ++slice_, offset_ = 0;
    if (slice_ == slices_->size()) return false;
    const grpc::Slice& slice = (*slices_)[slice_];
    *data = slice.begin() + offset_;
    *size = static_cast<int>(slice.size() - offset_);
    passed_ += slice.size() - offset_;
    offset_ = slice.size();
    return true;
  }
  void BackUp(int count) override {  // Only ever into the slice of the last Next.
    offset_ -= static_cast<size_t>(count);
    passed_ -= static_cast<size_t>(count);
  }
  bool Skip(int count) override {
    const void* data;
    int size;
    while (count > 0 && Next(&data, &size)) {
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return count == 0;
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(passed_); }

 private:
  const std::vector<grpc::Slice>* slices_;
  size_t slice_ = 0, offset_ = 0, passed_ = 0;
};

absl::Status FindPayload(const std::vector<grpc::Slice>& slices, size_t total, Layout* layout) {
  SliceStream stream(&slices);
  CodedInputStream in(&stream);
  in.SetTotalBytesLimit(kMaxMessageBytes);
  while (true) {
    layout->header_bytes = static_cast<size_t>(in.CurrentPosition());
    const uint32_t tag = in.ReadTag();
    if (tag == 0) break;
    if (tag == kPayloadTag) {
      uint32_t length;
      if (!in.ReadVarint32(&length)) break;
      layout->payload_begin = static_cast<size_t>(in.CurrentPosition());
      layout->payload_bytes = length;
      if (layout->payload_begin + length != total) {
        return absl::InvalidArgumentError(
            absl::StrCat("payload: says ", length, " bytes, but ", total - layout->payload_begin,
                         " follow; it must be the message's last field"));
      }
      if (length > kMaxChunkBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "payload: ", length, " bytes; a message carries at most ", kMaxChunkBytes));
      }
      return absl::OkStatus();
    }
    if (!WireFormatLite::SkipField(&in, tag)) break;
  }
  if (layout->header_bytes != total) {
    return absl::InvalidArgumentError(
        absl::StrCat("message: malformed at byte ", layout->header_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& header,
                               const Payload& payload) {
  const size_t header_bytes = header.ByteSizeLong();
  // Uninitialized memory that gRPC owns: one allocation, no zeroing.
  grpc::Slice prefix(grpc_slice_malloc(header_bytes + kMaxPrefix), grpc::Slice::STEAL_REF);
  auto* begin = const_cast<uint8_t*>(prefix.begin());
  uint8_t* end = header.SerializeWithCachedSizesToArray(begin);
  if (payload.bytes() > 0) {
    end = CodedOutputStream::WriteTagToArray(kPayloadTag, end);
    end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(payload.bytes()), end);
  }
  const auto used = static_cast<size_t>(end - begin);
  std::vector<grpc::Slice> slices;
  slices.reserve(1 + payload.pieces().size());
  slices.push_back(prefix.sub(0, used));
  for (const Payload::Piece& piece : payload.pieces()) {
    slices.emplace_back(const_cast<char*>(piece.data), piece.size, &Lent::Return,
                        Lent::Lend(piece.owner));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::Status DecodeMessage(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* header,
                           Payload* payload) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) {
    return absl::InvalidArgumentError("message: cannot be read (compressed or empty)");
  }
  size_t total = 0;
  for (const grpc::Slice& slice : *slices) total += slice.size();
  Layout layout;
  if (absl::Status status = FindPayload(*slices, total, &layout); !status.ok()) return status;

  SliceStream stream(slices.get());
  if (!header->ParseFromBoundedZeroCopyStream(&stream, static_cast<int>(layout.header_bytes))) {
    return absl::InvalidArgumentError("message: malformed header");
  }
  size_t at = 0;
  for (const grpc::Slice& slice : *slices) {
    const size_t skip = layout.payload_begin > at ? layout.payload_begin - at : 0;
    if (layout.payload_bytes > 0 && skip < slice.size()) {
      payload->Append(slice.begin() + skip, slice.size() - skip, slices);
    }
    at += slice.size();
  }
  return absl::OkStatus();
}

}  // namespace tandem
