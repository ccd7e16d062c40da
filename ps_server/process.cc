#include "ps_server/process.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/exit_status.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
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
  TANDEM_RETURN_IF_ERROR(server_.Start(options_.listen, {&service_}));
  const auto perform = [this](ServerActions actions) { Perform(std::move(actions)); };
  exchange_.Start(&service_, server_.loop(), server_.queue(), perform);
  replicate_.Start(&service_, server_.loop(), server_.queue(), perform);

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
  callbacks.on_state = [this] {
    const v1::ClusterState& state = member_->membership().state();
    if (state.phase() == v1::PHASE_ENDED) {
      End(state.failure().empty() ? kExitOk : kExitFailed);
      return;
    }
    Do([&state](int64_t now, ServerActions* actions, ServerLoop* core) {
      core->OnState(now, state, actions);
    });
  };
  callbacks.fill_heartbeat = [this](v1::HeartbeatRequest* request) {
    if (core_ != nullptr) *request->mutable_server() = core_->Status();
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
  disk_.reset();
  return exit_status_;
}

void PsServerProcess::Terminate() {
  server_.loop()->Post([this] { member_->SayLast("", [this] { End(kExitOk); }); });
}

// What the job means to a shard; the same job again changes nothing.
absl::Status PsServerProcess::Prepare() {
  const v1::RegisterResponse& response = member_->membership().job();
  if (core_ != nullptr) return absl::OkStatus();
  std::vector<uint64_t> shape(response.example_shape().begin(), response.example_shape().end());
  TANDEM_ASSIGN_OR_RETURN(auto model, Model::Create(response.job(), shape));
  const v1::Training& training = response.job().training();
  TANDEM_ASSIGN_OR_RETURN(
      auto optimizer, CreateOptimizer(response.job().optimizer(),
                                      training.consistency().has_sync() ? 1 : training.replicas()));
  auto job = std::make_shared<const ShardJob>(
      ShardJob{response.job(), std::move(model), std::move(optimizer),
               BatchPlan(response.job().training(), response.job().dataset().shuffle(),
                         response.job().seed(), response.train_examples())});
  const bool checkpoints = !response.state_dir().empty();
  state_dir_ = options_.state_dir.empty() ? response.state_dir() : options_.state_dir;
  core_ =
      std::make_unique<ServerLoop>(incarnation_, std::move(job), checkpoints, Hash64(incarnation_));
  disk_ = std::make_unique<Background>(server_.loop());
  standbys_ = std::make_unique<ReplicateClient>(
      server_.loop(),
      ReplicateClient::Callbacks{[this](uint64_t link, uint64_t acknowledged) {
                                   Do([&](int64_t now, ServerActions* actions, ServerLoop* core) {
                                     core->OnLinkAck(now, link, acknowledged, actions);
                                   });
                                 },
                                 [this](uint64_t link, const absl::Status& status) {
                                   Do([&](int64_t now, ServerActions* actions, ServerLoop* core) {
                                     core->OnLinkBroken(now, link, status, actions);
                                   });
                                 }});
  exchange_.SetCore(core_.get());
  replicate_.SetCore(core_.get());
  return absl::OkStatus();
}

template <typename Event>
void PsServerProcess::Do(const Event& event) {
  if (core_ == nullptr) return;
  ServerActions actions;
  event(EventLoop::NowMs(), &actions, core_.get());
  Perform(std::move(actions));
}

void PsServerProcess::Perform(ServerActions actions) {
  std::vector<ShardAnswer> answers;
  for (ServerAction& action : actions) {
    if (auto* answer = std::get_if<ShardAnswer>(&action)) {
      answers.push_back(std::move(*answer));
    } else if (auto* send = std::get_if<SendPush>(&action)) {
      standbys_->Send(std::move(*send));
    } else if (auto* ack = std::get_if<AckReplica>(&action)) {
      replicate_.Acknowledge(*ack);
    } else if (auto* open = std::get_if<OpenLink>(&action)) {
      standbys_->Open(std::move(*open));
    } else if (auto* close = std::get_if<CloseLink>(&action)) {
      standbys_->Close(*close);
    } else if (auto* end = std::get_if<EndReplica>(&action)) {
      replicate_.End(*end);
    } else if (auto* load = std::get_if<LoadShard>(&action)) {
      Perform(std::move(*load));
    } else if (auto* save = std::get_if<SaveShard>(&action)) {
      Perform(std::move(*save));
    } else if (auto* wake = std::get_if<WakeServerAt>(&action)) {
      server_.loop()->At(wake->at_ms, [this] {
        Do([](int64_t now, ServerActions* then, ServerLoop* core) { core->OnTime(now, then); });
      });
    } else if (std::holds_alternative<SayNews>(action)) {
      member_->SayNews();
    } else {
      Perform(std::get<FailServer>(action));
    }
  }
  if (!answers.empty()) exchange_.Deliver(answers);
  server_.SetServing(core_->serving());
}

void PsServerProcess::Perform(LoadShard load) {
  disk_->Run([this, load = std::move(load)]() -> std::function<void()> {
    auto tensors = std::make_shared<absl::StatusOr<ShardTensors>>(
        ReadShard(RealFileSystem(), state_dir_, load.checkpoint, load.blocks));
    return [this, tensors, load = load.load] {
      if (!tensors->ok()) Log(tensors->status().message());
      Do([&](int64_t now, ServerActions* actions, ServerLoop* core) {
        core->OnLoaded(now, load, std::move(*tensors), actions);
      });
    };
  });
}

void PsServerProcess::Perform(SaveShard save) {
  disk_->Run([this, save = std::make_shared<SaveShard>(
                        std::move(save))]() mutable -> std::function<void()> {
    const absl::StatusOr<v1::SavedShard> saved = WriteShard(
        RealFileSystem(), state_dir_, save->aside, save->shard, save->shards, save->tensors);
    // The tensors are let go of on the loop's thread, which writes to their memory again.
    return [this, saved, save = std::move(save)]() mutable {
      const uint64_t number = save->save;
      save.reset();
      if (!saved.ok()) Log(absl::StrCat("checkpoint: ", std::string(saved.status().message())));
      Do([&](int64_t now, ServerActions* actions, ServerLoop* core) {
        core->OnSaved(now, number, saved, actions);
      });
    };
  });
}

void PsServerProcess::Perform(const FailServer& fail) {
  Log(fail.status.message());
  member_->SayLast(std::string(fail.status.message()), [this] { End(kExitFailed); });
}

void PsServerProcess::End(int exit_status) {
  exit_status_ = exit_status;
  server_.loop()->Stop();
}

}  // namespace tandem
