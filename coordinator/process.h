// A coordinator process: serves a Job over gRPC until it is over.
#ifndef TANDEM_COORDINATOR_PROCESS_H_
#define TANDEM_COORDINATOR_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/server.h"
#include "common/rpc/unary.h"
#include "coordinator/job.h"
#include "coordinator/progress.h"
#include "proto/coordinator.grpc.pb.h"

namespace tandem {

struct CoordinatorOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT to open; port 0 for a free one.
  std::string summary;                 // File to write, or empty.
  JobOptions job;
};

// Checks everything about a job that can be checked before it runs: the data's files, the model's
// shapes, the labels. INVALID_ARGUMENT or NOT_FOUND names the field, file or line.
absl::StatusOr<std::unique_ptr<Job>> PrepareJob(v1::JobSpec spec, const JobOptions& options);

// Not thread-safe but for Terminate.
class CoordinatorProcess {
 public:
  CoordinatorProcess(CoordinatorOptions options, std::unique_ptr<Job> job);
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
  // Sends what the job answers and sees whether it is over.
  void Send(const Job::Replies& replies);
  int Finish();

  CoordinatorOptions options_;
  std::unique_ptr<Job> job_;
  Server server_;
  v1::Coordinator::AsyncService service_;
  uint64_t next_call_ = 1;
  Method<v1::RegisterRequest, v1::RegisterResponse> register_;
  Method<v1::HeartbeatRequest, v1::HeartbeatResponse> heartbeat_;
  Method<v1::LeaseRequest, v1::LeaseResponse> lease_;
  Progress progress_;
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_PROCESS_H_
