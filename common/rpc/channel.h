// The transport's settings, in one place for both ends. Measured: docs/wire.md.
#ifndef TANDEM_COMMON_RPC_CHANNEL_H_
#define TANDEM_COMMON_RPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <string>

namespace tandem {

constexpr size_t kChunkBytes = 4 << 20;      // A tensor travels in messages of this size,
constexpr size_t kMaxChunkBytes = 16 << 20;  // no payload is larger than this,
constexpr int kMaxMessageBytes = 20 << 20;   // and no message than this (a map, a header).

// A channel to `address` (HOST:PORT). Proxies of the environment are ignored, the name is resolved
// again after a failure, a peer that vanished is noticed by keepalive, and reconnecting backs off
// with jitter from 50 ms to 0.5 s. Each call makes connections of its own.
std::shared_ptr<grpc::Channel> CreateChannel(const std::string& address);

// The same settings for the serving side.
void ConfigureServer(grpc::ServerBuilder* builder);

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_CHANNEL_H_
