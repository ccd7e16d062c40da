// A cluster of real processes on this machine, for the length of one job.
#ifndef TANDEM_CLI_LOCAL_CLUSTER_H_
#define TANDEM_CLI_LOCAL_CLUSTER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

struct LocalClusterOptions {
  std::string folder;  // Holds coordinator/coordinator, ps_server/ps_server and worker/worker.
  int servers = 1;
  int spares = 0;  // Servers beyond those that the job cannot do without.
  int workers = 1;
  int lease_timeout_ms = 5000;  // The coordinator's own; also bounds how long it takes to end.
  std::vector<std::string> coordinator_flags;  // Job, overrides, summary.
  std::vector<std::string> worker_flags;
};

// Starts the coordinator, then servers and workers as soon as it listens; ends them all with the
// job. One thread, signals and the coordinator's output are its events. Nothing it started outlives
// it, or this process. Not thread-safe; one at a time in a process, since it takes SIGCHLD, SIGINT
// and SIGTERM.
class LocalCluster {
 public:
  explicit LocalCluster(LocalClusterOptions options);
  ~LocalCluster();

  // Until every process has ended. The exit status: the coordinator's, or 1 when the job lost its
  // workers or a server.
  int Run();

 private:
  enum class Stage {
    kStarting,  // The coordinator checks the job.
    kRunning,
    kStopping,  // The coordinator was told to end.
    kDraining,  // The coordinator has ended; the others follow.
  };
  enum class Role { kCoordinator, kServer, kWorker };
  struct Process {
    Role role;
    std::string name;  // "worker 2"
    pid_t pid;
    int64_t ended_ms = -1;
    int wait_status = 0;
    bool told = false;  // The user knows of its end.
  };

  absl::Status StartCoordinator();
  absl::Status StartOthers(const std::string& address);
  absl::Status Start(Role role, std::string name, std::vector<std::string> argv, int input,
                     int output);

  // Sleeps until something happens or it is time to act.
  void Wait();
  void ReadSignals();
  void ReadOutput();
  void Reap();
  void OnCoordinatorEnd(int wait_status);
  // Says who died, and ends a job that has lost what it cannot do without.
  void Watch();
  // How long a process that has ended is not missed. When all but the coordinator ended well, they
  // were told that the job has ended, and it is about to.
  int64_t GraceMs() const;
  // What the job cannot do without and has lost by `before`; empty while it can go on.
  std::string Lost(int64_t before) const;
  // Sends what is due to those who do not end by themselves.
  void Press();

  void Stop();
  void Fail(const absl::Status& status);
  void Terminate();
  void SignalAll(int signal);
  bool AnyRunning() const;

  LocalClusterOptions options_;
  Stage stage_ = Stage::kStarting;
  int64_t stage_ms_ = 0;  // When it began.
  int signals_ = -1;      // A signalfd.
  int output_ = -1;       // The coordinator's standard output; -1 once it is closed.
  std::string first_line_;
  std::vector<Process> processes_;  // The coordinator is the first.
  bool terminated_ = false;         // Those who drain were sent SIGTERM.
  int exit_status_ = 0;
  bool failed_ = false;  // exit_status_ is ours, not the coordinator's.
};

}  // namespace tandem

#endif  // TANDEM_CLI_LOCAL_CLUSTER_H_
