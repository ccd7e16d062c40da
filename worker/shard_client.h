// The worker's end of the data path to one shard: exchanges over streams that stay open. A stream
// serves one exchange at a time; a pull that waits does not hold up another push, which takes
// another stream.
#ifndef TANDEM_WORKER_SHARD_CLIENT_H_
#define TANDEM_WORKER_SHARD_CLIENT_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/event_loop.h"
#include "proto/cluster.pb.h"
#include "worker/actions.h"

namespace tandem {

// Not thread-safe: everything runs on the loop's thread.
class ShardClient {
 public:
  struct Callbacks {
    std::function<void(uint64_t id, uint64_t count)> on_pushed;
    std::function<void(uint64_t id)> on_pulled;
    // The exchange is over. What was acknowledged before was told before.
    std::function<void(uint64_t id, const absl::Status&)> on_error;
  };

  // Shard `number` of `map`, which holds `elements` elements from `first_element` on, of the
  // variables laid end to end.
  ShardClient(EventLoop* loop, const v1::ClusterMap& map, int number, size_t first_element,
              size_t elements, Callbacks callbacks);
  // Cancels what is under way; no callback comes any more.
  ~ShardClient();

  void Start(Exchange exchange);

 private:
  class Stream;

  EventLoop* loop_;
  uint64_t map_epoch_;
  uint32_t number_;
  v1::Shard shard_;
  size_t first_element_, elements_;
  Callbacks callbacks_;
  grpc::GenericStub stub_;
  std::vector<Stream*> streams_;  // Each deletes itself when gRPC is done with it.
};

}  // namespace tandem

#endif  // TANDEM_WORKER_SHARD_CLIENT_H_
