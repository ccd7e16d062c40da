#include "worker/worker_loop.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

constexpr size_t kTraining = 0, kEvaluation = 1;  // In kinds_.
constexpr double kMeasureWeight = 0.1;            // Of a new measurement in the running mean.
constexpr size_t kLeaseCalls = 2;                 // One that waits, and one that takes its place.

}  // namespace

WorkerLoop::WorkerLoop(WorkerOptions options, uint64_t model_elements, bool synchronous,
                       uint32_t replicas)
    : options_(options),
      model_elements_(model_elements),
      synchronous_(synchronous),
      replicas_(replicas),
      lease_backoff_(options.jitter_seed) {}

void WorkerLoop::Begin(int64_t now_ms, WorkerActions* actions) {
  if (desk_ == nullptr) return;
  desk_->now_ms = now_ms;
  desk_->actions = actions;
}

void WorkerLoop::OnMap(int64_t now_ms, const v1::ClusterMap& map, WorkerActions* actions) {
  if (desk_ != nullptr && desk_->map_epoch == map.epoch()) return;
  OnReset(actions);
  desk_ =
      std::make_unique<Desk>(map.epoch(), map.shards_size(), model_elements_, options_.threads,
                             replicas_, options_.jitter_seed + (++next_desk_ << 40), &next_task_);
  retries_reported_ = 0;
  kinds_.push_back(synchronous_ ? NewSynchronousWork() : NewAsynchronousWork(options_.prefetch));
  kinds_.push_back(NewEvaluationWork(synchronous_));
  Begin(now_ms, actions);
  Proceed(actions);
}

void WorkerLoop::OnReset(WorkerActions* actions) {
  if (desk_ == nullptr) return;
  desk_.reset();
  kinds_.clear();
  leases_.clear();
  received_ = 0;
  lease_retry_ms_ = -1;
  actions->push_back(AbandonAll());
}

void WorkerLoop::OnLease(int64_t now_ms, uint64_t id,
                         const absl::StatusOr<v1::LeaseResponse>& response,
                         WorkerActions* actions) {
  auto it = leases_.find(id);
  if (it == leases_.end() || desk_ == nullptr) return;
  Begin(now_ms, actions);
  if (!response.ok()) {
    // What it reported may not have arrived; reporting twice does no harm.
    std::move(it->second.begin(), it->second.end(), std::back_inserter(desk_->finished));
    leases_.erase(it);
    if (response.status().code() == absl::StatusCode::kFailedPrecondition) {
      OnReset(actions);
      actions->push_back(RegisterAgain());
      return;
    }
    lease_retry_ms_ = now_ms + lease_backoff_.NextMs();
    actions->push_back(WakeAt{lease_retry_ms_});
    return;
  }
  leases_.erase(it);
  lease_backoff_.Reset();
  if (response->ended()) {
    leaving_ = true;
    actions->push_back(Leave());
    return;
  }
  if (response->grant() > received_) {  // Else repeated, for its first answer might have been lost.
    received_ = response->grant();
    for (const v1::Work& work : response->work()) {
      if (work.map_epoch() != desk_->map_epoch) continue;
      kinds_[work.evaluation() ? kEvaluation : kTraining]->Add(work);
    }
  }
  Proceed(actions);
}

void WorkerLoop::OnPushed(int64_t now_ms, uint64_t id, int shard, uint64_t count,
                          WorkerActions* actions) {
  if (desk_ == nullptr) return;
  Begin(now_ms, actions);
  Transfers::Events events;
  desk_->transfers.OnPushed(id, shard, count, &events);
  Handle(events, actions);
}

void WorkerLoop::OnPulled(int64_t now_ms, uint64_t id, int shard, WorkerActions* actions) {
  if (desk_ == nullptr) return;
  Begin(now_ms, actions);
  Transfers::Events events;
  desk_->transfers.OnPulled(id, shard, &events);
  Handle(events, actions);
}

void WorkerLoop::OnExchangeError(int64_t now_ms, uint64_t id, int shard, const absl::Status& status,
                                 WorkerActions* actions) {
  if (desk_ == nullptr) return;
  Begin(now_ms, actions);
  Transfers::Events events;
  desk_->transfers.OnError(now_ms, id, shard, status, actions, &events);
  Handle(events, actions);
}

void WorkerLoop::Handle(const Transfers::Events& events, WorkerActions* actions) {
  if (events.empty()) return;
  for (const Transfers::Event& event : events) {
    uint64_t key;
    switch (event.kind) {
      case Transfers::Event::kPushed:
        for (auto& kind : kinds_) kind->OnPushed(desk_.get(), event.transfer);
        break;
      case Transfers::Event::kPulled:
        if (!desk_->weights.Fetched(event.transfer, &key)) break;
        for (auto& kind : kinds_) kind->OnWeights(desk_.get(), key);
        break;
      case Transfers::Event::kPast:
        if (!desk_->weights.Failed(event.transfer, &key)) break;
        for (auto& kind : kinds_) kind->OnPast(desk_.get(), key);
        break;
      case Transfers::Event::kFailed:
        actions->push_back(GiveUp{event.status});
        return;
    }
  }
  Proceed(actions);
}

void WorkerLoop::OnTask(int64_t now_ms, uint64_t task, const TaskResult& result,
                        WorkerActions* actions) {
  if (desk_ == nullptr) return;  // Of work that is void.
  Begin(now_ms, actions);
  if (!result.status.ok()) {
    actions->push_back(GiveUp{result.status});
    return;
  }
  if (desk_->combining.erase(task) == 0) Measure(result);
  for (auto& kind : kinds_) {
    if (kind->OnTask(desk_.get(), task, result)) break;
  }
  Proceed(actions);
}

void WorkerLoop::OnTime(int64_t now_ms, WorkerActions* actions) {
  if (desk_ == nullptr) return;
  Begin(now_ms, actions);
  desk_->transfers.OnTime(now_ms, actions);
  if (lease_retry_ms_ >= 0 && lease_retry_ms_ <= now_ms) lease_retry_ms_ = -1;
  Proceed(actions);
}

void WorkerLoop::Proceed(WorkerActions* actions) {
  for (auto& kind : kinds_) kind->Continue(desk_.get());
  MaybeSendLease(actions);
}

uint64_t WorkerLoop::Outstanding() const {
  uint64_t total = 0;
  for (const auto& kind : kinds_) total += kind->outstanding();
  return total;
}

// One call always waits at the coordinator, so that work which others gave up arrives at once. A
// second takes its place when half of the lease is finished, to report that and get more.
void WorkerLoop::MaybeSendLease(WorkerActions* actions) {
  if (lease_retry_ms_ >= 0 || leaving_) return;
  const bool report = !desk_->finished.empty() && desk_->finished.size() >= Outstanding();
  if (leases_.size() >= kLeaseCalls || (!leases_.empty() && !report)) return;
  SendLease send{next_lease_++, {}};
  for (const v1::FinishedWork& work : desk_->finished) *send.request.add_finished() = work;
  send.request.set_retries(desk_->transfers.retries() - retries_reported_);
  retries_reported_ = desk_->transfers.retries();
  send.request.set_seconds_per_micro_batch(seconds_per_micro_batch_);
  send.request.set_map_epoch(desk_->map_epoch);
  send.request.set_received(received_);
  leases_[send.id] = std::move(desk_->finished);
  desk_->finished.clear();
  actions->push_back(std::move(send));
}

void WorkerLoop::Measure(const TaskResult& result) {
  if (result.gradient == nullptr || result.gradient->values == nullptr || result.seconds <= 0)
    return;
  const double each =
      result.seconds / static_cast<double>(result.gradient->sums.size()) / options_.threads;
  seconds_per_micro_batch_ =
      seconds_per_micro_batch_ == 0
          ? each
          : seconds_per_micro_batch_ + kMeasureWeight * (each - seconds_per_micro_batch_);
}

std::string WorkerLoop::Waiting(int64_t now_ms, int64_t age_ms) const {
  return desk_ == nullptr ? "" : desk_->transfers.Waiting(now_ms, age_ms);
}

}  // namespace tandem
