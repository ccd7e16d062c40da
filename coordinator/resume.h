// What a coordinator goes on from: the state directory's journal and checkpoints, held against the
// job that it was started with.
#ifndef TANDEM_COORDINATOR_RESUME_H_
#define TANDEM_COORDINATOR_RESUME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/checkpoint_book.h"
#include "coordinator/state_work.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace tandem {

struct Resume {
  std::string state_dir;              // Empty: nothing is kept.
  bool begun = false;                 // The journal has its first record.
  uint64_t last_epoch = 0;            // Map epochs up to it may have been used.
  std::optional<v1::ClusterMap> map;  // That stood, of this very run.
  std::string cpu_isa;                // Fixed for all time; empty: not yet.
  bool started = false;               // The run under way has begun to train.
  uint64_t rollbacks = 0;
  std::vector<CheckpointBook::Entry> checkpoints;  // Good ones, oldest first.
  std::string summary;             // Not empty: the job had ended, with this summary.
  std::vector<std::string> notes;  // What people should know: checkpoints that were passed by.
};

// `total_steps` and `servers` of the job as it is started now. Errors name the journal or
// checkpoint and the remedy; nothing has been changed then:
//   FAILED_PRECONDITION  it is of another job or model (the first difference is named), or of a
//   newer
//                        format; or its checkpoints are all beyond the job's length
//   DATA_LOSS            there are checkpoints, and all are damaged; a record contradicts itself
absl::StatusOr<Resume> ReadState(const v1::JobSpec& spec, uint64_t total_steps, int servers,
                                 const std::vector<v1::Variable>& variables, const JobState& state);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_RESUME_H_
