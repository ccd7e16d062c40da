// A ps_server process: a member of the cluster that serves the shard the cluster map gives it.
#ifndef TANDEM_PS_SERVER_PROCESS_H_
#define TANDEM_PS_SERVER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/member.h"
#include "common/rpc/server.h"
#include "ps_server/exchange_service.h"
#include "ps_server/shard.h"

namespace tandem {

struct PsServerOptions {
  std::string coordinator;             // HOST:PORT.
  std::string listen = "127.0.0.1:0";  // HOST:PORT to open; port 0 for a free one.
  std::string advertise;               // What others are told; empty: what it listens on.
  int coordinator_timeout_s = 60;      // Exit when it has not answered for so long.
};

// Not thread-safe but for Terminate.
class PsServerProcess {
 public:
  explicit PsServerProcess(PsServerOptions options);
  ~PsServerProcess();

  // Opens the port. UNAVAILABLE names it.
  absl::Status Start();
  const std::string& address() const { return server_.address(); }
  // Until the job ends, or Terminate. The process's exit status.
  int Run();
  // Leaves the cluster and ends Run with status 0. Thread-safe.
  void Terminate();

 private:
  absl::Status Prepare();
  void OnState();
  void Install(const v1::ClusterMap& map, int number);
  void End(int exit_status);

  PsServerOptions options_;
  std::string incarnation_;
  Server server_;
  ExchangeService service_;
  std::unique_ptr<Member> member_;
  std::shared_ptr<const ShardJob> job_;
  std::unique_ptr<Shard> shard_;
  int exit_status_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_PROCESS_H_
