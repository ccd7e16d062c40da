// Reads a job file: text form, overrides, defaults, checks. Pure but for reading the one file.
#ifndef TANDEM_COORDINATOR_JOB_FILE_H_
#define TANDEM_COORDINATOR_JOB_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace tandem {

// All errors below are INVALID_ARGUMENT (NOT_FOUND for the file itself) and one line, for example
//   job.textproto:12:3: Training has no field "replica"; did you mean "replicas"?
//   --set=optimizer.adam.learning_rate=abc: expected a number
//   training.replicas: is 0; expected at least 1

// Parses `text` and stops at the first error; `file` is used in errors. Lines and columns count
// from 1.
absl::StatusOr<v1::JobSpec> ParseJob(absl::string_view file, const std::string& text);

// Applies `path.to.field=value`. A repeated scalar takes a comma-separated list, which takes the
// place of what it held (nothing after the `=` empties it); `{}` selects an empty message; a member
// of a oneof takes the place of the one that was set. Elements of repeated messages that are there
// are reached by number, from 0: `model.layers.1.dense.units=64`. Numbers are strict: no spaces,
// nothing behind them. On an error *job is as before.
absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* job);

// Fills in every default of job.proto and checks every field that can be checked without the data:
// what is required, ranges, finiteness, names. Layer names are filled in as Keras does. Idempotent.
absl::Status FinishJob(v1::JobSpec* job);

// The three together, on a file of at most 16 MiB. A pipe will do.
absl::StatusOr<v1::JobSpec> ReadJobFile(const std::string& file,
                                        const std::vector<std::string>& overrides);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_FILE_H_
