#include "common/rpc/channel.h"

namespace tandem {
namespace {

struct Setting {
  const char* name;
  int value;
};

// With default frames, windows and read chunks a large message stalls for tens of milliseconds.
constexpr Setting kTransport[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMaxMessageBytes},
    {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, kMaxMessageBytes},
    {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (16 << 20) - 1},
    {GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 8 << 20},
    {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 32 << 20},
    {"grpc.experimental.tcp_read_chunk_size", 4 << 20},
    {"grpc.experimental.tcp_min_read_chunk_size", 4 << 20},
    {"grpc.experimental.tcp_max_read_chunk_size", 16 << 20},
    // Both ends agree on keepalive, or the server would cut the client off for pinging too often.
    {GRPC_ARG_KEEPALIVE_TIME_MS, 10000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000},
    {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
};

constexpr Setting kClient[] = {
    {GRPC_ARG_ENABLE_HTTP_PROXY, 0},          {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
    {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50},  {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50},
    {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500},
};

constexpr Setting kServer[] = {
    {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000},
    {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
    {GRPC_ARG_ALLOW_REUSEPORT, 0},  // A port in use is an error, not a second listener.
};

}  // namespace

std::shared_ptr<grpc::Channel> CreateChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  for (const Setting& s : kTransport) arguments.SetInt(s.name, s.value);
  for (const Setting& s : kClient) arguments.SetInt(s.name, s.value);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void ConfigureServer(grpc::ServerBuilder* builder) {
  for (const Setting& s : kTransport) builder->AddChannelArgument(s.name, s.value);
  for (const Setting& s : kServer) builder->AddChannelArgument(s.name, s.value);
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
}

}  // namespace tandem
