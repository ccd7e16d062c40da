// What a Job and the state directory exchange: what was there at the start, and what is to be
// written. Job stays pure; its shell (and the simulator) does the work.
#ifndef TANDEM_COORDINATOR_STATE_WORK_H_
#define TANDEM_COORDINATOR_STATE_WORK_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

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

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_STATE_WORK_H_
