// A coordinator process: serves a Job over gRPC until it is over.
#ifndef TANDEM_COORDINATOR_PROCESS_H_
#define TANDEM_COORDINATOR_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/background.h"
#include "common/rpc/server.h"
#include "common/rpc/unary.h"
#include "coordinator/job.h"
#include "coordinator/journal.h"
#include "coordinator/progress.h"
#include "proto/coordinator.grpc.pb.h"

namespace tandem {

struct CoordinatorOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT to open; port 0 for a free one.
  std::string summary;                 // File to write, or empty.
  std::string state_dir;               // An absolute path, or empty: nothing is kept.
  JobOptions job;
};

struct PreparedJob {
  std::unique_ptr<Job> job;
  std::unique_ptr<Journal> journal;  // Null without a state directory.
};

// Checks everything about a job that can be checked before it runs: the data's files, the model's
// shapes, the labels, what the state directory holds. Errors name the field, file or line.
absl::StatusOr<PreparedJob> PrepareJob(v1::JobSpec spec, const CoordinatorOptions& options);

// Not thread-safe but for Terminate.
class CoordinatorProcess {
 public:
  CoordinatorProcess(CoordinatorOptions options, PreparedJob prepared);
  ~CoordinatorProcess();

  // Opens the port. UNAVAILABLE names it.
  absl::Status Start();
  const std::string& address() const { return server_.address(); }
  // Until the job is over. The process's exit status.
  int Run();
  // Ends the job as failed. Thread-safe.
  void Terminate();

 private:
  template <typename Request, typename Response>
  using Method = std::unique_ptr<UnaryMethod<Request, Response>>;

  void Serve();
  void Tick();
  // Says what workers left out for not being finite.
  void LogSkipped(const v1::LeaseRequest& request);
  // Sends what the job answers and sees whether it is over.
  void Send(const Job::Replies& replies);
  // Gives the disk what the job wants written.
  void Write();
  absl::Status Write(const StateWork& work);
  int Finish();

  CoordinatorOptions options_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<Journal> journal_;  // Used on the disk's thread alone.
  Server server_;
  v1::Coordinator::AsyncService service_;
  uint64_t next_call_ = 1;
  Method<v1::RegisterRequest, v1::RegisterResponse> register_;
  Method<v1::HeartbeatRequest, v1::HeartbeatResponse> heartbeat_;
  Method<v1::LeaseRequest, v1::LeaseResponse> lease_;
  Progress progress_;
  std::unique_ptr<Background> disk_;
  uint64_t skipped_ = 0;  // Reports of what was left out.
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_PROCESS_H_
