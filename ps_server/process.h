// A ps_server process: a member of the cluster that serves the shards the cluster map gives it.
#ifndef TANDEM_PS_SERVER_PROCESS_H_
#define TANDEM_PS_SERVER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/file_system.h"
#include "common/rpc/background.h"
#include "common/rpc/member.h"
#include "common/rpc/server.h"
#include "ps_server/exchange_service.h"
#include "ps_server/replicate_client.h"
#include "ps_server/replicate_service.h"
#include "ps_server/server_loop.h"

namespace tandem {

struct PsServerOptions {
  std::string coordinator;             // HOST:PORT.
  std::string listen = "127.0.0.1:0";  // HOST:PORT to open; port 0 for a free one.
  std::string advertise;               // What others are told; empty: what it listens on.
  std::string state_dir;               // Where checkpoints are; empty: where the coordinator says.
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
  // The event loop's name for an event of the core: runs it and does what it wants.
  template <typename Event>
  void Do(const Event& event);
  void Perform(ServerActions actions);
  void Perform(LoadShard load);
  void Perform(SaveShard save);
  void Perform(const FailServer& fail);
  void End(int exit_status);

  PsServerOptions options_;
  std::string incarnation_;
  ParameterServerService service_;
  Server server_;
  ExchangeService exchange_;
  ReplicateService replicate_;
  std::unique_ptr<Member> member_;
  std::string state_dir_;
  std::unique_ptr<ServerLoop> core_;  // Null until the job is known.
  std::unique_ptr<ReplicateClient> standbys_;
  std::unique_ptr<Background> disk_;
  int exit_status_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_PROCESS_H_
