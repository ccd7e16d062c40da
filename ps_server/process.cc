#include "ps_server/process.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/exit_status.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/tensor/cpu_isa.h"

namespace tandem {
namespace {

constexpr int kShutdownGraceMs = 200;

}  // namespace

PsServerProcess::PsServerProcess(PsServerOptions options)
    : options_(std::move(options)), incarnation_(NewIncarnation()) {}

PsServerProcess::~PsServerProcess() = default;

absl::Status PsServerProcess::Start() {
  TANDEM_RETURN_IF_ERROR(BestCpuIsa().status());  // The optimizers are compiled for AVX2.
  TANDEM_RETURN_IF_ERROR(server_.Start(options_.listen, {service_.service()}));
  service_.Start(server_.loop(), server_.queue());

  Membership::Options membership;
  membership.registration.set_role(v1::ROLE_SERVER);
  membership.registration.set_incarnation(incarnation_);
  membership.registration.set_address(options_.advertise.empty() ? server_.address()
                                                                 : options_.advertise);
  membership.give_up_ms = int64_t{1000} * options_.coordinator_timeout_s;
  membership.jitter_seed = Hash64(incarnation_);

  Member::Callbacks callbacks;
  callbacks.on_registered = [this] {
    if (absl::Status status = Prepare(); !status.ok()) {
      Log(status.message());
      member_->SayLast(std::string(status.message()), [this] { End(kExitFailed); });
    }
  };
  callbacks.on_state = [this] { OnState(); };
  callbacks.fill_heartbeat = [this](v1::HeartbeatRequest* request) {
    if (shard_ == nullptr) return;
    const bool report = member_->membership().state().phase() == v1::PHASE_REPORTING;
    request->mutable_server()->set_map_epoch(shard_->map_epoch());
    *request->mutable_server()->add_shards() = shard_->Status(report);
  };
  callbacks.on_give_up = [this](const absl::Status& status) {
    Log(status.message());
    End(status.code() == absl::StatusCode::kUnavailable ? kExitRetriable : kExitFailed);
  };
  member_ = std::make_unique<Member>(server_.loop(), options_.coordinator, std::move(membership),
                                     std::move(callbacks));
  return absl::OkStatus();
}

int PsServerProcess::Run() {
  member_->Start();
  server_.Run(kShutdownGraceMs);
  return exit_status_;
}

void PsServerProcess::Terminate() {
  server_.loop()->Post([this] { member_->SayLast("", [this] { End(kExitOk); }); });
}

// What the job means to a shard; the same job again changes nothing.
absl::Status PsServerProcess::Prepare() {
  const v1::RegisterResponse& response = member_->membership().job();
  if (job_ != nullptr) return absl::OkStatus();
  std::vector<uint64_t> shape(response.example_shape().begin(), response.example_shape().end());
  TANDEM_ASSIGN_OR_RETURN(auto model, Model::Create(response.job(), shape));
  const v1::Training& training = response.job().training();
  TANDEM_ASSIGN_OR_RETURN(
      auto optimizer, CreateOptimizer(response.job().optimizer(),
                                      training.consistency().has_sync() ? 1 : training.replicas()));
  job_ = std::make_shared<const ShardJob>(
      ShardJob{response.job(), std::move(model), std::move(optimizer),
               BatchPlan(response.job().training(), response.job().dataset().shuffle(),
                         response.job().seed(), response.train_examples())});
  return absl::OkStatus();
}

void PsServerProcess::OnState() {
  const v1::ClusterState& state = member_->membership().state();
  if (state.phase() == v1::PHASE_ENDED) {
    End(state.failure().empty() ? kExitOk : kExitFailed);
    return;
  }
  if (job_ == nullptr || (shard_ != nullptr && shard_->map_epoch() == state.map().epoch())) return;
  for (int k = 0; k < state.map().shards_size(); ++k) {
    if (state.map().shards(k).primary().incarnation() == incarnation_) {
      Install(state.map(), k);
      return;
    }
  }
  service_.SetShard(nullptr);
  shard_.reset();
  server_.SetServing(false);
}

void PsServerProcess::Install(const v1::ClusterMap& map, int number) {
  service_.SetShard(nullptr);
  absl::StatusOr<std::unique_ptr<Shard>> shard = Shard::Create(job_, map, number);
  if (!shard.ok()) {
    Log(shard.status().message());
    member_->SayLast(std::string(shard.status().message()), [this] { End(kExitFailed); });
    return;
  }
  shard_ = *std::move(shard);
  service_.SetShard(shard_.get());
  server_.SetServing(true);
}

void PsServerProcess::End(int exit_status) {
  exit_status_ = exit_status;
  server_.loop()->Stop();
}

}  // namespace tandem
