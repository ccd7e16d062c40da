// The ParameterServer service: turns streams of gRPC messages into operations of a Shard and its
// answers into messages. Everything runs on the loop's thread.
#ifndef TANDEM_PS_SERVER_EXCHANGE_SERVICE_H_
#define TANDEM_PS_SERVER_EXCHANGE_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/rpc/event_loop.h"
#include "common/rpc/unary.h"
#include "proto/parameter_server.grpc.pb.h"
#include "ps_server/shard.h"

namespace tandem {

// Not thread-safe.
class ExchangeService {
 public:
  // Streams open at once; a worker uses one or two.
  static constexpr size_t kMaxStreams = 4096;
  // Payloads of pushes that have begun and are not complete may take this much memory, and always
  // that of kMinTransfers pushes. Past it a push is refused with RESOURCE_EXHAUSTED before its
  // payload is kept.
  static constexpr size_t kMaxTransferBytes = size_t{1} << 30;
  static constexpr size_t kMinTransfers = 4;

  ExchangeService() = default;
  ~ExchangeService();

  grpc::Service* service() { return &service_; }
  // Begins to serve on the loop and queue of a started server.
  void Start(EventLoop* loop, grpc::ServerCompletionQueue* queue);

  // Serves another shard from now on, or none (nullptr): streams of the old one end with
  // FAILED_PRECONDITION. The shard must outlive its service.
  void SetShard(Shard* shard);

 private:
  class Stream;

  void Accept();
  void Inspect(uint64_t call, const v1::InspectRequest& request);
  // Hands answers to the streams they are for.
  void Deliver(const std::vector<ShardAnswer>& answers);

  v1::ParameterServer::WithRawMethod_Exchange<
      v1::ParameterServer::WithAsyncMethod_Inspect<v1::ParameterServer::Service>>
      service_;
  EventLoop* loop_ = nullptr;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  Shard* shard_ = nullptr;
  uint64_t next_call_ = 1;
  size_t transfer_bytes_ = 0;  // Of pushes that have begun and are not complete.
  std::map<uint64_t, Stream*> streams_;
  std::unique_ptr<UnaryMethod<v1::InspectRequest, v1::InspectResponse>> inspect_;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_EXCHANGE_SERVICE_H_
