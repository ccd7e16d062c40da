#include "coordinator/process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/exit_status.h"
#include "common/base/log.h"
#include "common/base/one_line.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/nn/model.h"
#include "coordinator/resume.h"
#include "coordinator/summary.h"

namespace tandem {
namespace {

// How often progress is looked at; also bounds how late a timer of the job may be.
constexpr int64_t kTickMs = 50;
constexpr int kShutdownGraceMs = 500;
// A job may leave out every step: only the first are said, the summary counts all.
constexpr uint64_t kLoggedSkips = 20;

// What a directory holds that another life of the coordinator may have left.
absl::StatusOr<JobState> LoadState(const std::string& state_dir,
                                   std::unique_ptr<Journal>* journal) {
  JobState state;
  state.state_dir = state_dir;
  Journal::Contents contents;
  TANDEM_ASSIGN_OR_RETURN(*journal, Journal::Open(RealFileSystem(), state_dir, &contents));
  state.records = std::move(contents.records);
  state.journal_torn = contents.torn;
  TANDEM_ASSIGN_OR_RETURN(state.checkpoints, ListCheckpoints(RealFileSystem(), state_dir));
  return state;
}

void LogResume(const Resume& resume) {
  for (const std::string& note : resume.notes) Log(note);
  if (!resume.summary.empty()) {
    Log(absl::StrCat("the job in ", resume.state_dir, " has ended; nothing is left to do"));
  } else if (resume.map.has_value()) {
    Log(absl::StrCat("goes on under map ", resume.map->epoch(), " of ", resume.state_dir,
                     ", when its servers are back"));
  } else if (!resume.checkpoints.empty()) {
    Log(absl::StrCat("goes on from ", resume.state_dir, "/checkpoints/",
                     resume.checkpoints.back().name));
  }
}

}  // namespace

absl::StatusOr<PreparedJob> PrepareJob(v1::JobSpec spec, const CoordinatorOptions& options) {
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
  PreparedJob prepared;
  Resume resume;
  if (!options.state_dir.empty()) {
    TANDEM_ASSIGN_OR_RETURN(const JobState state, LoadState(options.state_dir, &prepared.journal));
    const BatchPlan plan(spec.training(), spec.dataset().shuffle(), spec.seed(), train.examples);
    TANDEM_ASSIGN_OR_RETURN(resume, ReadState(spec, plan.total_steps(), options.job.servers,
                                              model->variables(), state));
    LogResume(resume);
  }
  prepared.job = std::make_unique<Job>(std::move(spec), options.job, train, test.examples,
                                       model->variables(), std::move(resume), EventLoop::NowMs());
  return prepared;
}

CoordinatorProcess::CoordinatorProcess(CoordinatorOptions options, PreparedJob prepared)
    : options_(std::move(options)),
      job_(std::move(prepared.job)),
      journal_(std::move(prepared.journal)),
      progress_(isatty(STDERR_FILENO) != 0) {}

CoordinatorProcess::~CoordinatorProcess() = default;

absl::Status CoordinatorProcess::Start() {
  TANDEM_RETURN_IF_ERROR(server_.Start(options_.listen, {&service_}));
  if (journal_ != nullptr) disk_ = std::make_unique<Background>(server_.loop());
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
        LogSkipped(request);
        Job::Replies replies;
        job_->OnLease(EventLoop::NowMs(), call, request, &replies);
        Send(replies);
      },
      cancelled);
  register_->Start();
  heartbeat_->Start();
  lease_->Start();
}

void CoordinatorProcess::LogSkipped(const v1::LeaseRequest& request) {
  for (const v1::FinishedWork& work : request.finished()) {
    if (work.skipped().empty() || ++skipped_ > kLoggedSkips) continue;
    Log(absl::StrCat("left out: ", OneLine(work.skipped()),
                     skipped_ == kLoggedSkips ? "; no more of these are said" : ""));
  }
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
  Write();
  if (job_->over()) server_.loop()->Stop();
}

void CoordinatorProcess::Write() {
  std::optional<StateWork> work = job_->TakeStateWork(EventLoop::NowMs());
  if (!work.has_value()) return;
  disk_->Run([this, work = *std::move(work)]() -> std::function<void()> {
    const absl::Status status = Write(work);
    return [this, status] {
      if (!status.ok()) Log(absl::StrCat("the state directory: ", std::string(status.message())));
      Job::Replies replies;
      job_->OnStateWork(EventLoop::NowMs(), status, &replies);
      Send(replies);
    };
  });
}

absl::Status CoordinatorProcess::Write(const StateWork& work) {
  if (const auto* append = std::get_if<AppendRecord>(&work))
    return journal_->Append(append->record);
  const Commit& commit = std::get<Commit>(work);
  return CommitCheckpoint(RealFileSystem(), options_.state_dir, commit.aside, commit.manifest,
                          commit.keep);
}

int CoordinatorProcess::Run() {
  Tick();
  server_.Run(kShutdownGraceMs);
  disk_.reset();
  progress_.Clear();
  return Finish();
}

int CoordinatorProcess::Finish() {
  const absl::Status& failure = job_->failure();
  // No checkpoint is good: that is for people to look at, as a bad job file is.
  int exit_status = failure.ok() ? kExitOk : absl::IsDataLoss(failure) ? kExitUsage : kExitFailed;
  const std::string json = job_->summary_json();
  if (!options_.summary.empty()) {
    if (absl::Status status = WriteFile(options_.summary, json); !status.ok()) {
      Log(absl::StrCat("--summary: ", std::string(status.message())));
      exit_status = kExitFailed;
    }
  }
  std::fputs(SummaryText(json).c_str(), failure.ok() ? stdout : stderr);
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
