#include "tests/worker/worker_script.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr uint64_t kElements = 8;

std::string Name(uint64_t step, Node node) {
  return absl::StrCat(step, ":(", node.level, ", ", node.index, ")");
}

uint64_t TaskOf(const WorkerAction& action) {
  if (const auto* task = std::get_if<ComputeGradient>(&action)) return task->task;
  if (const auto* task = std::get_if<CombineGradients>(&action)) return task->task;
  return std::get<EvaluateChunk>(action).task;
}

template <typename T>
T Pop(std::deque<T>* queue) {
  EXPECT_FALSE(queue->empty()) << "it waits for nothing of the kind";
  T front = queue->front();
  queue->pop_front();
  return front;
}

}  // namespace

v1::Work Train(uint64_t step_begin, uint64_t step_end, uint32_t level, uint64_t index) {
  v1::Work work;
  work.set_map_epoch(1);
  work.set_step_begin(step_begin);
  work.set_step_end(step_end);
  work.set_level(level);
  work.set_index(index);
  return work;
}

v1::Work Evaluate(uint64_t version, uint64_t chunk) {
  v1::Work work = Train(version, version + 1, 0, chunk);
  work.set_evaluation(true);
  return work;
}

WorkerScript::WorkerScript(int threads, int shards, bool synchronous, uint32_t replicas)
    : loop({threads, 1}, kElements, synchronous, replicas), shards_(shards) {}

void WorkerScript::Map(uint64_t epoch) {
  v1::ClusterMap map;
  map.set_epoch(epoch);
  for (int k = 0; k < shards_; ++k) map.add_shards();
  loop.OnMap(now_ms, map, &actions_);
  Take();
}

void WorkerScript::Take() {
  for (const WorkerAction& action : actions_) asks_.push_back(Read(action));
  actions_.clear();
}

std::string WorkerScript::Read(const WorkerAction& action) {
  if (const auto* exchange = std::get_if<Exchange>(&action)) {
    std::string text = absl::StrCat("shard ", exchange->shard, ":");
    for (const auto& push : exchange->pushes) {
      absl::StrAppend(&text, " push ", Name(push->step, push->node));
    }
    if (!exchange->pushes.empty()) pushes_.push_back(*exchange);
    if (exchange->pull_version.has_value()) {
      absl::StrAppend(&text, " pull ", *exchange->pull_version);
      pulls_.push_back(*exchange);
    }
    return text;
  }
  if (const auto* lease = std::get_if<SendLease>(&action)) {
    leases_.push_back(lease->id);
    last_lease_ = lease->request;
    std::string text = "lease";
    for (const v1::FinishedWork& done : lease->request.finished()) {
      absl::StrAppend(&text, " done ",
                      done.evaluation() ? absl::StrCat("chunk ", done.index(), " of ", done.step())
                                        : Name(done.step(), {done.level(), done.index()}));
    }
    return text;
  }
  if (std::holds_alternative<WakeAt>(action)) return "wake";
  if (std::holds_alternative<AbandonAll>(action)) {
    leases_.clear();
    tasks_.clear();
    pushes_.clear();
    pulls_.clear();
    return "abandon";
  }
  if (std::holds_alternative<RegisterAgain>(action)) return "register";
  if (std::holds_alternative<Leave>(action)) return "leave";
  if (const auto* give_up = std::get_if<GiveUp>(&action)) {
    return absl::StrCat("give up: ", std::string(give_up->status.message()));
  }
  tasks_.push_back(action);
  if (const auto* compute = std::get_if<ComputeGradient>(&action)) {
    EXPECT_NE(compute->weights, nullptr);
    return absl::StrCat("compute ", Name(compute->step, compute->node));
  }
  if (const auto* combine = std::get_if<CombineGradients>(&action)) {
    return absl::StrCat("combine ", Name(combine->left->step, combine->left->node), " ",
                        Name(combine->right->step, combine->right->node));
  }
  EXPECT_NE(std::get<EvaluateChunk>(action).weights, nullptr);
  return absl::StrCat("evaluate ", std::get<EvaluateChunk>(action).chunk);
}

std::vector<std::string> WorkerScript::Asks() { return std::exchange(asks_, {}); }

void WorkerScript::Answer(const v1::LeaseResponse& response) {
  loop.OnLease(now_ms, Pop(&leases_), response, &actions_);
  Take();
}

void WorkerScript::Grant(const std::vector<v1::Work>& work) {
  last_grant_.Clear();
  last_grant_.set_grant(++grant_);
  for (const v1::Work& one : work) *last_grant_.add_work() = one;
  Answer(last_grant_);
}

void WorkerScript::GrantAgain() { Answer(last_grant_); }

void WorkerScript::LeaseError(const absl::Status& status) {
  loop.OnLease(now_ms, Pop(&leases_), status, &actions_);
  Take();
}

void WorkerScript::End() {
  v1::LeaseResponse response;
  response.set_ended(true);
  Answer(response);
}

void WorkerScript::Computed(double seconds) {
  const WorkerAction task = Pop(&tasks_);
  TaskResult result;
  result.seconds = seconds;
  auto gradient = std::make_shared<Gradient>();
  if (const auto* compute = std::get_if<ComputeGradient>(&task)) {
    gradient->step = compute->step;
    gradient->node = compute->node;
    gradient->values = std::make_shared<Buffer>(kElements);
    gradient->sums.resize(1);
    result.gradient = gradient;
  } else if (const auto* combine = std::get_if<CombineGradients>(&task)) {
    gradient->step = combine->left->step;
    gradient->node = combine->left->node.Parent();
    gradient->values = combine->left->values;
    gradient->sums.resize(combine->left->sums.size() + combine->right->sums.size());
    result.gradient = gradient;
  } else {
    result.sums.set_examples(10);
  }
  loop.OnTask(now_ms, TaskOf(task), result, &actions_);
  Take();
}

void WorkerScript::ComputeFails(const absl::Status& status) {
  TaskResult result;
  result.status = status;
  loop.OnTask(now_ms, TaskOf(Pop(&tasks_)), result, &actions_);
  Take();
}

void WorkerScript::Pushed() {
  const Exchange exchange = Pop(&pushes_);
  loop.OnPushed(now_ms, exchange.id, exchange.shard, exchange.pushes.size(), &actions_);
  Take();
}

void WorkerScript::Pulled() {
  const Exchange exchange = Pop(&pulls_);
  loop.OnPulled(now_ms, exchange.id, exchange.shard, &actions_);
  Take();
}

void WorkerScript::ExchangeError(const absl::Status& status) {
  const Exchange exchange = pulls_.empty() ? Pop(&pushes_) : Pop(&pulls_);
  const auto same = [&](const Exchange& other) {
    return other.id == exchange.id && other.shard == exchange.shard;
  };
  pushes_.erase(std::remove_if(pushes_.begin(), pushes_.end(), same), pushes_.end());
  loop.OnExchangeError(now_ms, exchange.id, exchange.shard, status, &actions_);
  Take();
}

void WorkerScript::PassTo(int64_t ms) {
  now_ms = ms;
  loop.OnTime(now_ms, &actions_);
  Take();
}

}  // namespace tandem
