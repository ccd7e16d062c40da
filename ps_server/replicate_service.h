// Replicate of the ParameterServer service, the standby's end: turns the primary's messages into
// events of a ServerLoop and its acknowledgements into messages. Everything runs on the loop's
// thread.
#ifndef TANDEM_PS_SERVER_REPLICATE_SERVICE_H_
#define TANDEM_PS_SERVER_REPLICATE_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "ps_server/server_loop.h"
#include "ps_server/service.h"

namespace tandem {

// Not thread-safe.
class ReplicateService {
 public:
  // Streams open at once: a shard uses one.
  static constexpr size_t kMaxStreams = 256;

  using Perform = std::function<void(ServerActions)>;

  // Begins to serve on the loop and queue of a started server. What the core wants to be done goes
  // to `perform`.
  void Start(ParameterServerService* service, EventLoop* loop, grpc::ServerCompletionQueue* queue,
             Perform perform);
  // From now on there is a core, which outlives the service's loop.
  void SetCore(ServerLoop* core) { core_ = core; }

  // What the core wants done; a call that is gone is ignored.
  void Acknowledge(const AckReplica& ack);
  void End(const EndReplica& end);

 private:
  class Stream;

  void Accept();

  ParameterServerService* service_ = nullptr;
  EventLoop* loop_ = nullptr;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  ServerLoop* core_ = nullptr;  // Null until the job is known.
  Perform perform_;
  uint64_t next_call_ = 1;
  std::map<uint64_t, Stream*> streams_;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_REPLICATE_SERVICE_H_
