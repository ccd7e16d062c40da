// Messages whose last field is a tensor: a protobuf header, then the tensor's bytes, which are
// never copied through protobuf.
#ifndef TANDEM_COMMON_RPC_MESSAGE_H_
#define TANDEM_COMMON_RPC_MESSAGE_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"
#include "common/rpc/payload.h"

namespace tandem {

// `bytes payload = 15` of ExchangeRequest and ExchangeResponse: the highest number, hence last.
constexpr uint32_t kPayloadField = 15;

// The wire form of `header` (its payload field not set) with `payload` as that field. The result
// references the payload's memory and keeps its owners alive.
grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& header, const Payload& payload);

// The inverse: *payload references the slices of `buffer`, which it keeps alive. INVALID_ARGUMENT
// when the bytes are not such a message: malformed, a payload that is not last or longer than
// kMaxChunkBytes.
absl::Status DecodeMessage(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* header,
                           Payload* payload);

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_MESSAGE_H_
