#include "coordinator/process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/exit_status.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/nn/model.h"
#include "coordinator/summary.h"

namespace tandem {
namespace {

// How often progress is looked at; also bounds how late a timer of the job may be.
constexpr int64_t kTickMs = 50;
constexpr int kShutdownGraceMs = 500;

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> PrepareJob(v1::JobSpec spec, const JobOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo train, ScanDataset(spec.dataset(), Split::kTrain));
  TANDEM_ASSIGN_OR_RETURN(auto model, Model::Create(spec, train.example_shape));
  TANDEM_RETURN_IF_ERROR(model->CheckLabels(train.min_label, train.max_label));
  DatasetInfo test;
  if (spec.dataset().test_files_size() > 0) {
    TANDEM_ASSIGN_OR_RETURN(test, ScanDataset(spec.dataset(), Split::kTest));
    if (test.example_shape != train.example_shape) {
      return absl::InvalidArgumentError(
          "dataset.test_files: examples have another shape than those of dataset.train_files");
    }
    TANDEM_RETURN_IF_ERROR(model->CheckLabels(test.min_label, test.max_label));
  }
  return std::make_unique<Job>(std::move(spec), options, train, test.examples, model->variables());
}

CoordinatorProcess::CoordinatorProcess(CoordinatorOptions options, std::unique_ptr<Job> job)
    : options_(std::move(options)), job_(std::move(job)), progress_(isatty(STDERR_FILENO) != 0) {}

CoordinatorProcess::~CoordinatorProcess() = default;

absl::Status CoordinatorProcess::Start() {
  TANDEM_RETURN_IF_ERROR(server_.Start(options_.listen, {&service_}));
  Serve();
  server_.SetServing(true);
  return absl::OkStatus();
}

void CoordinatorProcess::Serve() {
  EventLoop* loop = server_.loop();
  auto* queue = server_.queue();
  const auto cancelled = [this](uint64_t call) { job_->OnCancelled(EventLoop::NowMs(), call); };
  register_ = std::make_unique<UnaryMethod<v1::RegisterRequest, v1::RegisterResponse>>(
      loop, &next_call_,
      [this, queue](auto* context, auto* request, auto* writer, void* tag) {
        service_.RequestRegister(context, request, writer, queue, queue, tag);
      },
      [this](uint64_t call, const v1::RegisterRequest& request) {
        Job::Replies replies;
        job_->OnRegister(EventLoop::NowMs(), call, request, &replies);
        Send(replies);
      },
      cancelled);
  heartbeat_ = std::make_unique<UnaryMethod<v1::HeartbeatRequest, v1::HeartbeatResponse>>(
      loop, &next_call_,
      [this, queue](auto* context, auto* request, auto* writer, void* tag) {
        service_.RequestHeartbeat(context, request, writer, queue, queue, tag);
      },
      [this](uint64_t call, const v1::HeartbeatRequest& request) {
        Job::Replies replies;
        job_->OnHeartbeat(EventLoop::NowMs(), call, request, &replies);
        Send(replies);
      },
      cancelled);
  lease_ = std::make_unique<UnaryMethod<v1::LeaseRequest, v1::LeaseResponse>>(
      loop, &next_call_,
      [this, queue](auto* context, auto* request, auto* writer, void* tag) {
        service_.RequestLease(context, request, writer, queue, queue, tag);
      },
      [this](uint64_t call, const v1::LeaseRequest& request) {
        Job::Replies replies;
        job_->OnLease(EventLoop::NowMs(), call, request, &replies);
        Send(replies);
      },
      cancelled);
  register_->Start();
  heartbeat_->Start();
  lease_->Start();
}

void CoordinatorProcess::Tick() {
  const int64_t now = EventLoop::NowMs();
  Job::Replies replies;
  job_->OnTime(now, &replies);
  Send(replies);
  progress_.Show(*job_, now);
  const int64_t next = std::min(job_->next_time_ms(now), now + kTickMs);
  server_.loop()->At(next, [this] { Tick(); });
}

void CoordinatorProcess::Send(const Job::Replies& replies) {
  for (const Job::Reply& reply : replies) {
    if (const auto* r = std::get_if<v1::RegisterResponse>(&reply.response)) {
      register_->Answer(reply.call, reply.status, *r);
    } else if (const auto* h = std::get_if<v1::HeartbeatResponse>(&reply.response)) {
      heartbeat_->Answer(reply.call, reply.status, *h);
    } else {
      lease_->Answer(reply.call, reply.status, std::get<v1::LeaseResponse>(reply.response));
    }
  }
  if (job_->over()) server_.loop()->Stop();
}

int CoordinatorProcess::Run() {
  Tick();
  server_.Run(kShutdownGraceMs);
  progress_.Clear();
  return Finish();
}

int CoordinatorProcess::Finish() {
  int exit_status = job_->failure().ok() ? kExitOk : kExitFailed;
  if (!options_.summary.empty()) {
    if (absl::Status status = WriteFile(options_.summary, SummaryJson(*job_)); !status.ok()) {
      Log(absl::StrCat("--summary: ", std::string(status.message())));
      exit_status = kExitFailed;
    }
  }
  std::fputs(SummaryText(*job_).c_str(), job_->failure().ok() ? stdout : stderr);
  std::fflush(stdout);
  return exit_status;
}

void CoordinatorProcess::Terminate() {
  server_.loop()->Post([this] {
    Job::Replies replies;
    job_->Fail(absl::CancelledError("the coordinator was told to stop"), &replies);
    Send(replies);
  });
}

}  // namespace tandem
