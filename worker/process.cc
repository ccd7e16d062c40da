#include "worker/process.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/exit_status.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/unary.h"
#include "common/tensor/cpu_isa.h"

namespace tandem {
namespace {

// Past the coordinator's hold.
constexpr std::chrono::milliseconds kLeaseTimeout(5000);
constexpr int64_t kSayWaitingMs = 5000;

absl::Status CheckData(const char* which, const Dataset& data, uint64_t examples,
                       const v1::RegisterResponse& job) {
  const std::vector<uint64_t> shape(job.example_shape().begin(), job.example_shape().end());
  if (data.info().examples == examples && data.info().example_shape == shape) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("dataset.", which, "_files: this worker finds ",
                                                 data.info().examples,
                                                 " examples where the coordinator found ", examples,
                                                 "; every machine must see the same files"));
}

absl::StatusOr<std::shared_ptr<const WorkerJob>> ReadJob(const v1::RegisterResponse& response) {
  const v1::JobSpec& spec = response.job();
  const std::vector<uint64_t> shape(response.example_shape().begin(),
                                    response.example_shape().end());
  TANDEM_ASSIGN_OR_RETURN(auto model, Model::Create(spec, shape));
  TANDEM_ASSIGN_OR_RETURN(auto train, OpenDataset(spec.dataset(), Split::kTrain));
  TANDEM_RETURN_IF_ERROR(CheckData("train", *train, response.train_examples(), response));
  std::unique_ptr<const Dataset> test;
  if (response.test_examples() > 0) {
    TANDEM_ASSIGN_OR_RETURN(test, OpenDataset(spec.dataset(), Split::kTest));
    TANDEM_RETURN_IF_ERROR(CheckData("test", *test, response.test_examples(), response));
  }
  return std::make_shared<const WorkerJob>(WorkerJob{
      spec, std::move(model),
      BatchPlan(spec.training(), spec.dataset().shuffle(), spec.seed(), response.train_examples()),
      std::move(train), std::move(test)});
}

}  // namespace

WorkerProcess::WorkerProcess(WorkerProcessOptions options)
    : options_(std::move(options)), incarnation_(NewIncarnation()) {
  if (options_.threads == 0) {
    options_.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
}

WorkerProcess::~WorkerProcess() {
  if (preparing_.joinable()) preparing_.join();
}

absl::Status WorkerProcess::Start() {
  TANDEM_ASSIGN_OR_RETURN(const absl::string_view isa, BestCpuIsa());
  Membership::Options membership;
  membership.registration.set_role(v1::ROLE_WORKER);
  membership.registration.set_incarnation(incarnation_);
  membership.registration.set_cpu_isa(std::string(isa));
  membership.give_up_ms = int64_t{1000} * options_.coordinator_timeout_s;
  membership.jitter_seed = Hash64(incarnation_);

  Member::Callbacks callbacks;
  callbacks.on_registered = [this] { OnRegistered(); };
  callbacks.on_state = [this] { OnState(); };
  callbacks.fill_heartbeat = [](v1::HeartbeatRequest*) {};
  callbacks.on_give_up = [this](const absl::Status& status) {
    Log(status.message());
    End(status.code() == absl::StatusCode::kUnavailable ? kExitRetriable : kExitFailed);
  };
  member_ = std::make_unique<Member>(&loop_, options_.coordinator, std::move(membership),
                                     std::move(callbacks));
  return absl::OkStatus();
}

int WorkerProcess::Run() {
  member_->Start();
  loop_.At(EventLoop::NowMs() + kSayWaitingMs, [this] { SayWaiting(); });
  loop_.Run([this] { clients_.clear(); }, nullptr);
  executor_.reset();
  return exit_status_;
}

void WorkerProcess::Terminate() {
  loop_.Post([this] { member_->SayLast("", [this] { End(kExitOk); }); });
}

void WorkerProcess::OnRegistered() {
  if (core_ != nullptr) {  // Registered again: the leases of before are void.
    core_->OnReset(&actions_);
    Perform();
  }
  if (preparing_.joinable()) return;
  preparing_ = std::thread([this, job = member_->membership().job()] {
    auto prepared = ReadJob(job);
    loop_.Post(
        [this, prepared = std::move(prepared)]() mutable { OnPrepared(std::move(prepared)); });
  });
}

void WorkerProcess::OnPrepared(absl::StatusOr<std::shared_ptr<const WorkerJob>> job) {
  if (!job.ok()) return Fail(job.status());
  job_ = *std::move(job);
  WorkerOptions options;
  options.threads = options_.threads;
  options.prefetch = static_cast<int>(job_->spec.training().prefetch());
  options.jitter_seed = Hash64(incarnation_);
  core_ = std::make_unique<WorkerLoop>(options, job_->model->num_elements(),
                                       job_->spec.training().consistency().has_sync(),
                                       job_->plan.replicas());
  OnState();
}

void WorkerProcess::OnState() {
  const v1::ClusterState& state = member_->membership().state();
  if (state.phase() == v1::PHASE_ENDED) {
    End(state.failure().empty() ? kExitOk : kExitFailed);
  } else if (core_ == nullptr || !member_->membership().registered()) {
    return;
  } else if (state.phase() == v1::PHASE_TRAINING || state.phase() == v1::PHASE_EVALUATING) {
    BeginMap(state.map());
  } else if (state.phase() == v1::PHASE_WAITING) {
    core_->OnReset(&actions_);
    Perform();
  }
}

void WorkerProcess::BeginMap(const v1::ClusterMap& map) {
  if (executor_ == nullptr) {
    if (absl::Status status = FixCpuIsa(member_->membership().state().cpu_isa()); !status.ok()) {
      return Fail(status);
    }
    executor_ = std::make_unique<Executor>(
        job_, options_.threads, [this](uint64_t task, TaskResult result) {
          loop_.Post([this, task, result = std::move(result)] {
            core_->OnTask(EventLoop::NowMs(), task, result, &actions_);
            Perform();
          });
        });
  }
  if (clients_.empty() || clients_epoch_ != map.epoch()) MakeClients(map);
  core_->OnMap(EventLoop::NowMs(), map, &actions_);
  Perform();
  clients_epoch_ = map.epoch();  // What was abandoned was the work of another map.
}

void WorkerProcess::MakeClients(const v1::ClusterMap& map) {
  clients_.clear();
  clients_epoch_ = map.epoch();
  size_t first = 0;
  for (int k = 0; k < map.shards_size(); ++k) {
    size_t elements = 0;
    for (const v1::Block& block : map.shards(k).blocks()) elements += block.end() - block.begin();
    ShardClient::Callbacks callbacks;
    callbacks.on_pushed = [this, k](uint64_t id, uint64_t count) {
      core_->OnPushed(EventLoop::NowMs(), id, k, count, &actions_);
      Perform();
    };
    callbacks.on_pulled = [this, k](uint64_t id) {
      core_->OnPulled(EventLoop::NowMs(), id, k, &actions_);
      Perform();
    };
    callbacks.on_error = [this, k](uint64_t id, const absl::Status& status) {
      core_->OnExchangeError(EventLoop::NowMs(), id, k, status, &actions_);
      Perform();
    };
    clients_.push_back(
        std::make_unique<ShardClient>(&loop_, map, k, first, elements, std::move(callbacks)));
    first += elements;
  }
}

void WorkerProcess::Perform() {
  if (performing_) return;  // The outer call goes on with what was added.
  performing_ = true;
  for (size_t i = 0; i < actions_.size() && !loop_.stopping(); ++i) {
    WorkerAction action = std::move(actions_[i]);
    std::visit([this](auto& a) { Do(std::move(a)); }, action);
  }
  actions_.clear();
  performing_ = false;
}

void WorkerProcess::Do(Exchange exchange) {
  const auto shard = static_cast<size_t>(exchange.shard);
  clients_[shard]->Start(std::move(exchange));
}

void WorkerProcess::Do(SendLease lease) {
  lease.request.set_node(member_->membership().node());
  lease.request.set_incarnation(incarnation_);
  UnaryCall<v1::LeaseResponse>::Start(
      &loop_, kLeaseTimeout,
      [this, &lease](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return member_->stub()->AsyncLease(context, lease.request, queue);
      },
      [this, id = lease.id](const absl::StatusOr<v1::LeaseResponse>& response) {
        core_->OnLease(EventLoop::NowMs(), id, response, &actions_);
        Perform();
      });
}

void WorkerProcess::Do(const WakeAt& wake) {
  loop_.At(wake.at_ms, [this] {
    core_->OnTime(EventLoop::NowMs(), &actions_);
    Perform();
  });
}

void WorkerProcess::Do(const AbandonAll& abandon) {
  if (executor_ != nullptr) executor_->Abandon();
  clients_epoch_ =
      0;  // The next map gets clients of its own; those of this one are cancelled then.
}

void WorkerProcess::Do(const RegisterAgain& again) { member_->membership().Forget(); }

void WorkerProcess::Do(const GiveUp& give_up) { Fail(give_up.status); }

void WorkerProcess::Do(const Leave& leave) {
  // The state says how the job ended; it comes with the heartbeat at once.
}

void WorkerProcess::DoTask(const ComputeTask& task) {
  TaskResult result;
  if (!executor_->Run(task, &result)) return;
  const uint64_t number = std::visit([](const auto& t) { return t.task; }, task);
  core_->OnTask(EventLoop::NowMs(), number, result, &actions_);
}

void WorkerProcess::Fail(const absl::Status& status) {
  Log(status.message());
  member_->SayLast(std::string(status.message()), [this] { End(kExitFailed); });
}

void WorkerProcess::SayWaiting() {
  const Membership& membership = member_->membership();
  if (core_ != nullptr) {
    const std::string waiting = core_->Waiting(EventLoop::NowMs(), kSayWaitingMs);
    if (!waiting.empty()) Log(absl::StrCat("waiting for ", waiting));
  }
  if (membership.registered() && membership.state().phase() == v1::PHASE_WAITING) {
    Log(absl::StrCat("waiting with the coordinator for ", membership.state().waiting_for()));
  }
  loop_.At(EventLoop::NowMs() + kSayWaitingMs, [this] { SayWaiting(); });
}

void WorkerProcess::End(int exit_status) {
  exit_status_ = exit_status;
  loop_.Stop();
}

}  // namespace tandem
