// A listening gRPC server on an EventLoop, with gRPC's own health service answered on the same
// queue (a synchronous service in the process would halve its throughput; docs/wire.md).
#ifndef TANDEM_COMMON_RPC_SERVER_H_
#define TANDEM_COMMON_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"

namespace tandem {

// Not thread-safe: everything runs on its loop's thread.
class Server {
 public:
  Server();
  ~Server();

  // Opens `listen` (HOST:PORT, port 0 for a free one) for `services`, which must outlive it. The
  // loop's queue is made here, as gRPC asks. Error: UNAVAILABLE naming the address.
  absl::Status Start(const std::string& listen, const std::vector<grpc::Service*>& services);

  EventLoop* loop() { return loop_.get(); }
  grpc::ServerCompletionQueue* queue() { return queue_; }
  // HOST:PORT that it listens on.
  const std::string& address() const { return address_; }

  // What health checks answer; false until the process can do its work.
  void SetServing(bool serving) { serving_ = serving; }

  // Runs the loop until loop()->Stop(), then ends what is in flight within `grace_ms`.
  void Run(int grace_ms);

 private:
  class Health;

  std::unique_ptr<Health> health_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<EventLoop> loop_;
  grpc::ServerCompletionQueue* queue_ = nullptr;  // Owned by loop_.
  std::string address_;
  bool serving_ = false;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_SERVER_H_
