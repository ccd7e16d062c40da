#include "worker/transfers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// Whether a shard's answer stands, however often it is asked.
bool IsFinal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kUnimplemented ||
         status.code() == absl::StatusCode::kPermissionDenied;
}

}  // namespace

uint64_t Transfers::Start(int64_t now_ms, std::vector<std::shared_ptr<const Gradient>> pushes,
                          std::optional<uint64_t> pull_version, std::shared_ptr<Buffer> into,
                          WorkerActions* actions) {
  const uint64_t id = next_++;
  Transfer& transfer = transfers_[id];
  transfer = {now_ms, std::move(pushes), pull_version, std::move(into), {}, 0, 0};
  transfer.pushing = transfer.pushes.empty() ? 0 : shards_;
  transfer.pulling = pull_version.has_value() ? shards_ : 0;
  for (int shard = 0; shard < shards_; ++shard) {
    const uint64_t seed =
        jitter_seed_ + id * static_cast<uint64_t>(shards_) + static_cast<uint64_t>(shard);
    transfer.parts.push_back({0, !pull_version.has_value(), Backoff(seed), -1, {}});
    Send(id, transfer, shard, actions);
  }
  return id;
}

void Transfers::Send(uint64_t id, const Transfer& transfer, int shard,
                     WorkerActions* actions) const {
  const Part& part = transfer.parts[static_cast<size_t>(shard)];
  Exchange exchange{id, shard, {}, {}, {}};
  exchange.pushes.assign(transfer.pushes.begin() + static_cast<std::ptrdiff_t>(part.acked),
                         transfer.pushes.end());
  if (!part.pulled) {
    exchange.pull_version = transfer.pull_version;
    exchange.into = transfer.into;
  }
  actions->push_back(std::move(exchange));
}

void Transfers::OnPushed(uint64_t id, int shard, uint64_t count, Events* events) {
  auto it = transfers_.find(id);
  if (it == transfers_.end()) return;
  Part& part = it->second.parts[static_cast<size_t>(shard)];
  const bool through = part.acked == it->second.pushes.size();
  part.acked = std::min<uint64_t>(part.acked + count, it->second.pushes.size());
  if (through || part.acked < it->second.pushes.size()) return;
  if (--it->second.pushing == 0) events->push_back({Event::kPushed, id, {}});
  MaybeErase(it);
}

void Transfers::OnPulled(uint64_t id, int shard, Events* events) {
  auto it = transfers_.find(id);
  if (it == transfers_.end() || it->second.parts[static_cast<size_t>(shard)].pulled) return;
  it->second.parts[static_cast<size_t>(shard)].pulled = true;
  if (--it->second.pulling == 0) events->push_back({Event::kPulled, id, {}});
  MaybeErase(it);
}

void Transfers::OnError(int64_t now_ms, uint64_t id, int shard, const absl::Status& status,
                        WorkerActions* actions, Events* events) {
  auto it = transfers_.find(id);
  if (it == transfers_.end()) return;
  if (status.code() == absl::StatusCode::kOutOfRange) {
    events->push_back({Event::kPast, id, status});
    it->second.pulling = 0;
    for (Part& part : it->second.parts) part.pulled = true;
    // The status ended the call: acknowledgements that were still on their way are lost.
    if (IsThrough(it->second, shard)) return MaybeErase(it);
  }
  if (IsFinal(status)) {
    events->push_back({Event::kFailed, id, status});
    transfers_.erase(it);
    return;
  }
  if (IsThrough(it->second, shard)) return;
  Part& part = it->second.parts[static_cast<size_t>(shard)];
  ++retries_;
  part.trouble = status;
  part.retry_ms = now_ms + part.backoff.NextMs();
  actions->push_back(WakeAt{part.retry_ms});
}

void Transfers::OnTime(int64_t now_ms, WorkerActions* actions) {
  for (auto& [id, transfer] : transfers_) {
    for (int shard = 0; shard < shards_; ++shard) {
      Part& part = transfer.parts[static_cast<size_t>(shard)];
      if (part.retry_ms < 0 || part.retry_ms > now_ms) continue;
      part.retry_ms = -1;
      if (!IsThrough(transfer, shard)) Send(id, transfer, shard, actions);
    }
  }
}

bool Transfers::IsThrough(const Transfer& transfer, int shard) {
  const Part& part = transfer.parts[static_cast<size_t>(shard)];
  return part.acked == transfer.pushes.size() && part.pulled;
}

void Transfers::MaybeErase(std::map<uint64_t, Transfer>::iterator it) {
  if (it->second.pushing == 0 && it->second.pulling == 0) transfers_.erase(it);
}

std::string Transfers::Waiting(int64_t now_ms, int64_t age_ms) const {
  for (const auto& [id, transfer] : transfers_) {  // Oldest first.
    if (now_ms - transfer.begun_ms < age_ms) continue;
    for (size_t shard = 0; shard < transfer.parts.size(); ++shard) {
      const Part& part = transfer.parts[shard];
      if (part.acked == transfer.pushes.size() && part.pulled) continue;
      return absl::StrCat(
          "shard ", shard, " for ", (now_ms - transfer.begun_ms) / 1000, " s",
          transfer.pull_version.has_value() && !part.pulled
              ? absl::StrCat(" (version ", *transfer.pull_version, ")")
              : "",
          part.trouble.ok() ? "" : absl::StrCat(": ", std::string(part.trouble.message())));
    }
  }
  return "";
}

}  // namespace tandem
