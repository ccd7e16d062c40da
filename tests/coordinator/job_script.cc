#include "tests/coordinator/job_script.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/tree.h"
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

JobScript::JobScript(const v1::JobSpec& spec, JobOptions options, uint64_t test_examples)
    : job(spec, options, TenExamples(), test_examples, OneVariable()),
      replicas(spec.training().replicas()) {}

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
  request.set_incarnation(absl::StrCat("life ", next_call_));
  request.set_address(absl::StrCat(name, ":1"));
  return Register(name, request);
}

absl::Status JobScript::Worker(const std::string& name, const std::string& cpu_isa) {
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_incarnation(absl::StrCat("life ", next_call_));
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
  if (process.is_server && !request.has_server()) {
    request.mutable_server()->set_map_epoch(process.state.map().epoch());
    request.mutable_server()->add_shards();
    if (process.state.phase() == v1::PHASE_REPORTING) {
      v1::ShardReport* report = request.mutable_server()->mutable_shards(0)->mutable_report();
      for (const v1::Shard& shard : process.state.map().shards()) {
        if (shard.primary().incarnation() != process.incarnation) continue;
        uint64_t chunks = 0;
        for (const v1::Block& block : shard.blocks()) {
          chunks += (block.end() - block.begin() + 1023) / 1024;
        }
        report->set_chunk_hashes(std::string(16 * chunks, 'h'));
        report->set_updates_applied(7);
        v1::Sums* epoch = report->add_epochs();
        epoch->set_examples(20);
        epoch->set_loss(5);
      }
    }
  }
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
  for (const v1::FinishedWork& work : finished) *request.add_finished() = work;
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
