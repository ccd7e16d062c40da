// Exchange and Inspect of the ParameterServer service: turns streams of gRPC messages into
// operations of a ServerLoop and its answers into messages. Everything runs on the loop's thread.
#ifndef TANDEM_PS_SERVER_EXCHANGE_SERVICE_H_
#define TANDEM_PS_SERVER_EXCHANGE_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/rpc/event_loop.h"
#include "common/rpc/unary.h"
#include "ps_server/server_loop.h"
#include "ps_server/service.h"

namespace tandem {

// Not thread-safe.
class ExchangeService {
 public:
  // Streams open at once; a worker uses one or two.
  static constexpr size_t kMaxStreams = 4096;
  // Payloads of pushes that have begun and are not applied may take this much memory, and always
  // that of kMinTransfers pushes. Past it a push is refused with RESOURCE_EXHAUSTED before its
  // payload is kept.
  static constexpr size_t kMaxTransferBytes = size_t{1} << 30;
  static constexpr size_t kMinTransfers = 4;

  // What the core wants to be done goes to `perform`, which hands answers back to Deliver.
  using Perform = std::function<void(ServerActions)>;

  ExchangeService() = default;
  ~ExchangeService();

  // Begins to serve on the loop and queue of a started server.
  void Start(ParameterServerService* service, EventLoop* loop, grpc::ServerCompletionQueue* queue,
             Perform perform);

  // From now on there is a core, which outlives the service's loop.
  void SetCore(ServerLoop* core) { core_ = core; }

  // Hands answers to the streams they are for.
  void Deliver(const std::vector<ShardAnswer>& answers);

 private:
  class Stream;

  void Accept();

  ParameterServerService* service_ = nullptr;
  EventLoop* loop_ = nullptr;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  ServerLoop* core_ = nullptr;  // Null until the job is known.
  Perform perform_;
  uint64_t next_call_ = 1;
  size_t transfer_bytes_ = 0;  // Of pushes that have begun and are not complete.
  std::map<uint64_t, Stream*> streams_;
  std::unique_ptr<UnaryMethod<v1::InspectRequest, v1::InspectResponse>> inspect_;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_EXCHANGE_SERVICE_H_
