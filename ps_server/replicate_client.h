// The primary's end of Replicate streams: sends states and pushes to standbys.
#ifndef TANDEM_PS_SERVER_REPLICATE_CLIENT_H_
#define TANDEM_PS_SERVER_REPLICATE_CLIENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "ps_server/server_loop.h"

namespace tandem {

// Not thread-safe: everything runs on the loop's thread.
class ReplicateClient {
 public:
  struct Callbacks {
    std::function<void(uint64_t link, uint64_t acknowledged)> on_ack;
    std::function<void(uint64_t link, const absl::Status&)> on_broken;
  };

  ReplicateClient(EventLoop* loop, Callbacks callbacks);
  // Cancels what is under way; no callback comes any more.
  ~ReplicateClient();

  void Open(OpenLink open);
  // Of a link that is gone: ignored.
  void Send(SendPush push);
  // No callback of this link comes any more.
  void Close(const CloseLink& close);

 private:
  class Stream;

  EventLoop* loop_;
  Callbacks callbacks_;
  std::map<uint64_t, Stream*> streams_;  // By link. Each deletes itself when gRPC is done with it.
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_REPLICATE_CLIENT_H_
