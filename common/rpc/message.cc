#include "common/rpc/message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"

namespace tandem {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kPayloadTag = (kPayloadField << 3) | 2;  // Length-delimited.
constexpr size_t kMaxPrefix = 16;                           // A tag and a length.

// Where the payload begins and how long it is; both 0 when there is none, then `header_bytes` is all.
struct Layout {
  size_t header_bytes = 0, payload_begin = 0, payload_bytes = 0;
};

absl::Status FindPayload(std::vector<grpc::Slice>* slices, size_t total, Layout* layout) {
  // Headers are small and lie in the first slices; the scan skips from field to field.
  grpc::ByteBuffer view(slices->data(), slices->size());
  grpc::ProtoBufferReader reader(&view);
  CodedInputStream in(&reader);
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
        return absl::InvalidArgumentError(absl::StrCat(
            "payload: says ", length, " bytes, but ", total - layout->payload_begin,
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
    auto* owner = new std::shared_ptr<const void>(piece.owner);
    slices.emplace_back(
        const_cast<char*>(piece.data), piece.size,
        [](void* p) { delete static_cast<std::shared_ptr<const void>*>(p); }, owner);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::Status DecodeMessage(const grpc::ByteBuffer& buffer,
                           google::protobuf::MessageLite* header, Payload* payload) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) {
    return absl::InvalidArgumentError("message: cannot be read (compressed or empty)");
  }
  size_t total = 0;
  for (const grpc::Slice& slice : *slices) total += slice.size();
  Layout layout;
  if (absl::Status status = FindPayload(slices.get(), total, &layout); !status.ok()) return status;

  grpc::ByteBuffer view(slices->data(), slices->size());
  grpc::ProtoBufferReader reader(&view);
  if (!header->ParseFromBoundedZeroCopyStream(&reader, static_cast<int>(layout.header_bytes))) {
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
