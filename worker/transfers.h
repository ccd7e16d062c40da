// Gradients to all shards and weights from all shards, each part tried until it is through. A push
// is known by its name, so trying again is always safe. Pure.
#ifndef TANDEM_WORKER_TRANSFERS_H_
#define TANDEM_WORKER_TRANSFERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/backoff.h"
#include "worker/actions.h"

namespace tandem {

// Not thread-safe.
class Transfers {
 public:
  // What a transfer has come to.
  struct Event {
    enum Kind {
      kPushed,  // Every shard has acknowledged every push.
      kPulled,  // Every shard's part of the weights is in the buffer.
      kPast,    // A shard is past the version: whatever needed it is done everywhere.
      kFailed,  // It was refused; `status` says why.
    } kind;
    uint64_t transfer;
    absl::Status status;
  };
  using Events = std::vector<Event>;

  Transfers(int shards, uint64_t jitter_seed) : shards_(shards), jitter_seed_(jitter_seed) {}

  // Begins one; its number. Of `pushes` and `pull_version` at least one is there; `into` goes with
  // the latter.
  uint64_t Start(int64_t now_ms, std::vector<std::shared_ptr<const Gradient>> pushes,
                 std::optional<uint64_t> pull_version, std::shared_ptr<Buffer> into,
                 WorkerActions* actions);

  void OnPushed(uint64_t transfer, int shard, uint64_t count, Events* events);
  void OnPulled(uint64_t transfer, int shard, Events* events);
  // The exchange broke. It is tried again after a while unless the shard's answer is final.
  void OnError(int64_t now_ms, uint64_t transfer, int shard, const absl::Status& status,
               WorkerActions* actions, Events* events);
  void OnTime(int64_t now_ms, WorkerActions* actions);

  // The transfer that has been under way longest, for the log: whom it waits for and why; empty
  // when none is older than `age_ms`.
  std::string Waiting(int64_t now_ms, int64_t age_ms) const;
  uint64_t retries() const { return retries_; }

 private:
  struct Part {
    uint64_t acked = 0;  // Pushes of this transfer that the shard has.
    bool pulled = false;
    Backoff backoff;
    int64_t retry_ms = -1;  // Not under way: when it is tried again.
    absl::Status trouble;
  };
  struct Transfer {
    int64_t begun_ms;
    std::vector<std::shared_ptr<const Gradient>> pushes;
    std::optional<uint64_t> pull_version;
    std::shared_ptr<Buffer> into;
    std::vector<Part> parts;  // By shard.
    int pushing, pulling;     // Shards that are not through.
  };

  void Send(uint64_t id, const Transfer& transfer, int shard, WorkerActions* actions) const;
  static bool IsThrough(const Transfer& transfer, int shard);
  void MaybeErase(std::map<uint64_t, Transfer>::iterator it);

  int shards_;
  uint64_t jitter_seed_;
  uint64_t next_ = 1;
  std::map<uint64_t, Transfer> transfers_;
  uint64_t retries_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_WORKER_TRANSFERS_H_
