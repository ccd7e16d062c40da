// The summary of a job: a JSON file for scripts, a few lines for people.
#ifndef TANDEM_COORDINATOR_SUMMARY_H_
#define TANDEM_COORDINATOR_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace tandem {

// How a job ended, or stands.
struct JobSummary {
  uint64_t steps = 0;
  uint64_t resumed_at = 0;  // The step at which this life of the coordinator began to lease.
  uint64_t epochs = 0;
  uint64_t examples = 0;  // As the shards counted them; all shards agree, or the job fails.
  uint64_t examples_skipped = 0;
  double seconds = 0;     // From the first lease to the last update.
  double final_loss = 0;  // Mean over the examples of the last epoch.
  std::vector<double> epoch_losses;
  std::map<std::string, double> evaluation;  // Metric name to value; "loss" is one.
  std::string params_digest;
  uint64_t workers_seen = 0;
  int servers = 0;
  uint64_t retries = 0, duplicates_ignored = 0, leases_expired = 0, backups = 0;
  uint64_t rollbacks = 0, promotions = 0;
  uint64_t checkpoints_written = 0, checkpoints_failed = 0;
  std::string cpu_isa;
  // Asynchronous and bounded: of each shard, the updates it applied (intervals of step * R + r).
  std::vector<std::vector<v1::Interval>> applied;
};

// The JSON text; its fields are a contract (docs/summary.md). `failure` is ok when the job ended
// well.
std::string SummaryJson(const v1::JobSpec& spec, const JobSummary& summary,
                        const absl::Status& failure);

// Lines for a terminal, from the JSON text.
std::string SummaryText(const std::string& json);

// Writes `text` to `file` aside and renames it, so that a reader sees all of it or nothing.
// UNAVAILABLE names the file and why.
absl::Status WriteFile(const std::string& file, const std::string& text);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_SUMMARY_H_
