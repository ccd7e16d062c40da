#include "tests/coordinator/job_script.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/tree.h"
#include "common/checkpoint/checkpoint.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

DatasetInfo TenExamples() {
  DatasetInfo info;
  info.examples = 10;
  info.example_shape = {3};
  return info;
}

std::vector<v1::Variable> OneVariable() {
  v1::Variable variable;
  variable.set_name("dense/kernel");
  variable.add_shape(3000);
  return {variable};
}

// Unlike any other, also of other scripts.
std::string NewLife() {
  static int lives = 0;
  return absl::StrCat("life ", ++lives);
}

}  // namespace

v1::JobSpec SmallJob(uint32_t replicas, uint64_t steps) {
  v1::JobSpec spec;
  spec.set_name("small");
  spec.mutable_training()->set_global_batch_size(10);
  spec.mutable_training()->set_replicas(replicas);
  spec.mutable_training()->set_steps(steps);
  spec.mutable_training()->mutable_consistency()->mutable_sync();
  spec.mutable_evaluation()->set_batch_size(10);
  return spec;
}

Names NamesOf(const v1::LeaseResponse& response, uint32_t replicas) {
  Names names;
  for (const v1::Work& work : response.work()) {
    const Node node{work.level(), work.index()};
    for (uint64_t step = work.step_begin(); step < work.step_end(); ++step) {
      const uint64_t end = work.evaluation() ? node.index + 1 : node.EndLeaf(replicas);
      for (uint64_t r = node.FirstLeaf(); r < end; ++r) names.emplace_back(step, r);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

JobScript::JobScript(const v1::JobSpec& spec, JobOptions options, uint64_t test_examples,
                     Resume resume)
    : spec(spec),
      job(spec, options, TenExamples(), test_examples, OneVariable(), std::move(resume), 1000),
      replicas(spec.training().replicas()) {}

std::set<uint64_t>& JobScript::Content(const v1::ClusterMap& map, int shard,
                                       const v1::Holder& holder) {
  const auto key = std::make_tuple(holder.incarnation(), shard, holder.since());
  auto it = content_.find(key);
  if (it != content_.end()) return it->second;
  std::set<uint64_t> content;
  if (holder.since() == map.began()) {
    for (uint64_t u = 0; u < map.step() * replicas; ++u) content.insert(u);
  } else {
    content = Content(map, shard, map.shards(shard).primary());
  }
  return content_[key] = std::move(content);
}

v1::ServerStatus JobScript::StatusOf(const Process& process) {
  const v1::ClusterMap& map = process.state.map();
  v1::ServerStatus status;
  status.set_map_epoch(map.epoch());
  for (int k = 0; k < map.shards_size(); ++k) {
    const v1::Shard& shard = map.shards(k);
    for (const v1::Holder* holder : {&shard.primary(), &shard.standby()}) {
      if (holder->incarnation() != process.incarnation) continue;
      v1::ShardStatus* out = status.add_shards();
      out->set_shard(static_cast<uint32_t>(k));
      out->set_since(holder->since());
      out->set_standby(holder != &shard.primary());
      if (auto it = troubles.find(holder->address()); it != troubles.end()) {
        out->set_trouble(it->second);
        out->set_checkpoint_damaged(damaged);
        continue;
      }
      out->set_ready(true);
      const std::set<uint64_t>& content = Content(map, k, *holder);
      uint64_t whole = 0;  // Micro-batches, from the first on without a gap.
      while (content.count(whole) > 0) ++whole;
      if (spec.training().consistency().has_sync()) out->set_version(whole / replicas);
      for (uint64_t u : content) {
        v1::Interval* last =
            out->applied_size() == 0 ? nullptr : out->mutable_applied(out->applied_size() - 1);
        if (last == nullptr || last->end() != u) {
          last = out->add_applied();
          last->set_begin(u);
        }
        last->set_end(u + 1);
      }
      if (auto it = saved.find(holder->address()); it != saved.end()) {
        *out->mutable_saved() = it->second;
      }
      if (process.state.phase() != v1::PHASE_REPORTING || out->standby()) continue;
      v1::ShardReport* report = out->mutable_report();
      uint64_t chunks = 0;
      for (const v1::Block& block : shard.blocks()) {
        chunks += (block.end() - block.begin() + 1023) / 1024;
      }
      report->set_chunk_hashes(std::string(16 * chunks, 'h'));
      report->set_updates_applied(7);
      *report->mutable_applied() = out->applied();
      v1::Sums* epoch = report->add_epochs();
      epoch->set_examples(20);
      epoch->set_loss(5);
    }
  }
  return status;
}

JobState JobScript::State() const {
  JobState state;
  state.state_dir = "/state";
  state.records = records;
  for (const v1::Manifest& manifest : checkpoints) {
    state.checkpoints.push_back({CheckpointName(manifest.step()), manifest, absl::OkStatus()});
  }
  return state;
}

void JobScript::TakeOverProcesses(const JobScript& other) {
  processes = other.processes;
  content_ = other.content_;
  saved = other.saved;
}

void JobScript::Rejoin(const std::string& name) {
  const Process old = processes.at(name);
  v1::RegisterRequest request;
  request.set_role(old.is_server ? v1::ROLE_SERVER : v1::ROLE_WORKER);
  request.set_incarnation(old.incarnation);
  request.set_address(absl::StrCat(name, ":1"));
  request.set_cpu_isa("avx2");
  EXPECT_TRUE(Register(name, request).ok());
  if (processes.at(name).seen != 0) return;
  processes.at(name).state = old.state;  // It keeps what it knew until it hears better.
}

void JobScript::Write() {
  while (!disk_stands) {
    const std::optional<StateWork> work = job.TakeStateWork(now_ms);
    if (!work.has_value()) return;
    const auto* append = std::get_if<AppendRecord>(&*work);
    if (disk.ok() && append != nullptr) records.push_back(append->record);
    if (disk.ok() && append == nullptr) checkpoints.push_back(std::get<Commit>(*work).manifest);
    Job::Replies replies;
    job.OnStateWork(now_ms, disk, &replies);
    Take(&replies);
  }
}

uint64_t JobScript::NewCall() {
  open_.insert(next_call_);
  return next_call_++;
}

void JobScript::Take(Job::Replies* replies) {
  for (Job::Reply& reply : *replies) {
    EXPECT_LT(reply.call, next_call_);
    EXPECT_TRUE(answered.emplace(reply.call, reply).second)
        << "call " << reply.call << " is answered twice";
    open_.erase(reply.call);
    auto it = heartbeats_.find(reply.call);
    if (it == heartbeats_.end()) continue;
    auto process = processes.find(it->second);
    if (process != processes.end()) Read(&process->second, reply.call);
    heartbeats_.erase(it);
  }
  replies->clear();
  Write();
}

void JobScript::Read(Process* process, uint64_t call) {
  const auto& response = std::get<v1::HeartbeatResponse>(answered.at(call).response);
  if (!response.has_state()) return;
  process->state = response.state();
  process->seen = response.state().sequence();
}

absl::Status JobScript::Register(const std::string& name, const v1::RegisterRequest& request) {
  const uint64_t call = NewCall();
  Job::Replies replies;
  job.OnRegister(now_ms, call, request, &replies);
  Take(&replies);
  EXPECT_TRUE(Answered(call));
  const Job::Reply& reply = answered.at(call);
  if (!reply.status.ok()) return reply.status;
  Process& process = processes[name];
  process = Process();
  process.node = std::get<v1::RegisterResponse>(reply.response).node();
  process.incarnation = request.incarnation();
  process.is_server = request.role() == v1::ROLE_SERVER;
  Heartbeat(name);
  return absl::OkStatus();
}

absl::Status JobScript::Server(const std::string& name) {
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_incarnation(NewLife());
  request.set_address(absl::StrCat(name, ":1"));
  return Register(name, request);
}

absl::Status JobScript::Worker(const std::string& name, const std::string& cpu_isa) {
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_incarnation(NewLife());
  request.set_cpu_isa(cpu_isa);
  return Register(name, request);
}

uint64_t JobScript::Heartbeat(const std::string& name) {
  return Heartbeat(name, v1::HeartbeatRequest());
}

uint64_t JobScript::Heartbeat(const std::string& name, v1::HeartbeatRequest request) {
  Process& process = processes.at(name);
  request.set_node(process.node);
  request.set_incarnation(process.incarnation);
  request.set_seen(process.seen);
  if (process.is_server && !request.has_server()) *request.mutable_server() = StatusOf(process);
  const uint64_t call = NewCall();
  heartbeats_[call] = name;
  Job::Replies replies;
  job.OnHeartbeat(now_ms, call, request, &replies);
  Take(&replies);
  return call;
}

void JobScript::Leave(const std::string& name) {
  v1::HeartbeatRequest request;
  request.set_leaving(true);
  EXPECT_TRUE(Answered(Heartbeat(name, request)));
  processes.erase(name);
}

void JobScript::Fatal(const std::string& name, const std::string& error) {
  v1::HeartbeatRequest request;
  request.set_fatal(error);
  Heartbeat(name, request);
}

void JobScript::SpreadNews() {
  for (bool news = true; news;) {
    news = false;
    for (auto& [name, process] : processes) {
      const uint64_t before = process.seen;
      Heartbeat(name);
      // A server answers news with what it has done about it.
      news = news || process.seen != before;
    }
  }
}

uint64_t JobScript::Ask(const std::string& name, const std::vector<v1::FinishedWork>& finished,
                        double seconds_per_micro_batch) {
  const Process& process = processes.at(name);
  v1::LeaseRequest request;
  request.set_node(process.node);
  request.set_incarnation(process.incarnation);
  request.set_map_epoch(process.state.map().epoch());
  request.set_received(process.received);
  request.set_seconds_per_micro_batch(seconds_per_micro_batch);
  const v1::ClusterMap& map = process.state.map();
  for (const v1::FinishedWork& work : finished) {
    *request.add_finished() = work;
    const Node node{work.level(), work.index()};
    for (int k = 0; k < map.shards_size() && !work.evaluation(); ++k) {
      if (work.map_epoch() != map.epoch()) continue;
      for (uint64_t r = node.FirstLeaf(); r < node.EndLeaf(replicas); ++r) {
        const v1::Shard& shard = map.shards(k);
        Content(map, k, shard.primary()).insert(work.step() * replicas + r);
        if (shard.has_standby()) {
          Content(map, k, shard.standby()).insert(work.step() * replicas + r);
        }
      }
    }
  }
  const uint64_t call = NewCall();
  Job::Replies replies;
  job.OnLease(now_ms, call, request, &replies);
  Take(&replies);
  return call;
}

v1::LeaseResponse JobScript::Lease(const std::string& name,
                                   const std::vector<v1::FinishedWork>& finished) {
  const uint64_t call = Ask(name, finished);
  EXPECT_TRUE(Answered(call)) << name << " gets no work";
  if (!Answered(call)) return {};
  const v1::LeaseResponse& response = LeaseAnswer(call);
  processes.at(name).received = std::max(processes.at(name).received, response.grant());
  return response;
}

std::vector<v1::FinishedWork> JobScript::All(const v1::LeaseResponse& response) const {
  std::vector<v1::FinishedWork> finished;
  for (const v1::Work& work : response.work()) {
    for (uint64_t step = work.step_begin(); step < work.step_end(); ++step) {
      v1::FinishedWork& done = finished.emplace_back();
      done.set_map_epoch(work.map_epoch());
      done.set_evaluation(work.evaluation());
      done.set_step(step);
      done.set_level(work.level());
      done.set_index(work.index());
      if (work.evaluation()) {
        done.mutable_sums()->set_examples(10);
        done.mutable_sums()->set_loss(static_cast<double>(work.index()));
      }
    }
  }
  return finished;
}

const v1::LeaseResponse& JobScript::LeaseAnswer(uint64_t call) const {
  const Job::Reply& reply = answered.at(call);
  EXPECT_TRUE(reply.status.ok()) << reply.status;
  return std::get<v1::LeaseResponse>(reply.response);
}

void JobScript::PassTo(int64_t to_ms) {
  while (now_ms < to_ms) {
    const int64_t next = job.next_time_ms(now_ms);
    EXPECT_GT(next, now_ms);
    now_ms = std::min(next, to_ms);
    Job::Replies replies;
    job.OnTime(now_ms, &replies);
    Take(&replies);
  }
}

void JobScript::PassWithout(const std::string& silent, int64_t ms) {
  for (const int64_t to_ms = now_ms + ms; now_ms < to_ms;) {
    PassTo(std::min(to_ms, now_ms + 500));
    std::vector<std::string> names;
    for (const auto& [name, process] : processes) names.push_back(name);
    for (const std::string& name : names) {
      if (name != silent) Heartbeat(name);
    }
  }
}

}  // namespace tandem
