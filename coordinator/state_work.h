// What a Job and the state directory exchange: what was there at the start, and what is to be
// written. Job stays pure; its shell (and the simulator) does the work.
#ifndef TANDEM_COORDINATOR_STATE_WORK_H_
#define TANDEM_COORDINATOR_STATE_WORK_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint.h"
#include "proto/state.pb.h"

namespace tandem {

// What the state directory held when the coordinator started.
struct JobState {
  std::string state_dir;                     // Empty: nothing is kept.
  std::vector<v1::JournalRecord> records;    // Of the journal, in order.
  bool journal_torn = false;                 // One more record was begun and lost.
  std::vector<CheckpointEntry> checkpoints;  // All, oldest first, good or not.
};

// Work for the disk, one at a time.
struct AppendRecord {
  v1::JournalRecord record;  // Journal::Append.
};
struct Commit {
  std::string aside;  // CommitCheckpoint.
  v1::Manifest manifest;
  uint32_t keep = 1;
};
using StateWork = std::variant<AppendRecord, Commit>;

// The work in its order, one under way. Not thread-safe.
class StateQueue {
 public:
  // A record goes before commits that have not begun: it holds others up.
  void Add(v1::JournalRecord record);
  void Add(Commit commit);
  // The next one to do; none while one is under way, or before it is time to try again.
  std::optional<StateWork> Take(int64_t now_ms);
  // The one under way; it stays the first until Done or Retry.
  const StateWork& front() const { return queue_.front(); }
  void Done();
  // It failed, and is tried again at `at_ms`.
  void Retry(int64_t at_ms);

  bool has_commits() const;
  // When Take has something to give; INT64_MAX when that depends on Done or Add.
  int64_t next_ms() const;

 private:
  std::deque<StateWork> queue_;
  bool under_way_ = false;
  int64_t not_before_ms_ = INT64_MIN;
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_STATE_WORK_H_
