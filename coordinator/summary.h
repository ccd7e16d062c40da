// The summary of a job: a JSON file for scripts, a few lines for people.
#ifndef TANDEM_COORDINATOR_SUMMARY_H_
#define TANDEM_COORDINATOR_SUMMARY_H_

#include <string>

#include "absl/status/status.h"
#include "coordinator/job.h"

namespace tandem {

// The JSON text; its fields are a contract (docs/summary.md).
std::string SummaryJson(const Job& job);

// Lines for a terminal.
std::string SummaryText(const Job& job);

// Writes `text` to `file` aside and renames it, so that a reader sees all of it or nothing.
// UNAVAILABLE names the file and why.
absl::Status WriteFile(const std::string& file, const std::string& text);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_SUMMARY_H_
