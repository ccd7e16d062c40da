#include "common/rpc/server.h"

#include <grpc/support/log.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/unary.h"
#include "third_party/grpc_health/health.grpc.pb.h"

namespace tandem {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// grpc.health.v1.Health/Check for the empty service name and for every registered one. Watch is
// left unimplemented, which clients must expect of any server.
class Server::Health {
 public:
  explicit Health(const Server* server) : server_(server) {}

  grpc::Service* service() { return &service_; }

  void Serve(EventLoop* loop, grpc::ServerCompletionQueue* queue) {
    check_ = std::make_unique<UnaryMethod<HealthCheckRequest, HealthCheckResponse>>(
        loop, &next_call_,
        [this, queue](grpc::ServerContext* context, HealthCheckRequest* request,
                      grpc::ServerAsyncResponseWriter<HealthCheckResponse>* writer, void* tag) {
          service_.RequestCheck(context, request, writer, queue, queue, tag);
        },
        [this](uint64_t call, const HealthCheckRequest& request) { Check(call, request); },
        nullptr);
    check_->Start();
  }

 private:
  void Check(uint64_t call, const HealthCheckRequest& request) {
    HealthCheckResponse response;
    const std::string& name = request.service();
    if (!name.empty() && name.rfind("tandem.v1.", 0) != 0) {
      check_->Answer(call, absl::NotFoundError(absl::StrCat("unknown service ", name)), response);
      return;
    }
    response.set_status(server_->serving_ ? HealthCheckResponse::SERVING
                                          : HealthCheckResponse::NOT_SERVING);
    check_->Answer(call, absl::OkStatus(), response);
  }

  const Server* server_;
  grpc::health::v1::Health::WithAsyncMethod_Check<grpc::health::v1::Health::Service> service_;
  uint64_t next_call_ = 0;
  std::unique_ptr<UnaryMethod<HealthCheckRequest, HealthCheckResponse>> check_;
};

namespace {

// An address that cannot be opened is one line of ours; gRPC's own, in terms of its source files,
// would stand before it. GRPC_VERBOSITY brings it back.
std::unique_ptr<grpc::Server> StartQuietly(grpc::ServerBuilder* builder) {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return builder->BuildAndStart();
  gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
  std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  return server;
}

}  // namespace

Server::Server() : health_(std::make_unique<Health>(this)) {}
Server::~Server() = default;

absl::Status Server::Start(const std::string& listen, const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  ConfigureServer(&builder);
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.RegisterService(health_->service());
  std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  queue_ = queue.get();
  server_ = StartQuietly(&builder);
  loop_ = std::make_unique<EventLoop>(std::move(queue));
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("--listen=", listen,
                     ": cannot be opened; is the port in use, or the host not of this machine?"));
  }
  address_ = absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
  health_->Serve(loop_.get(), queue_);
  return absl::OkStatus();
}

void Server::Run(int grace_ms) {
  loop_->Run(nullptr, [this, grace_ms] {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(grace_ms));
  });
}

}  // namespace tandem
