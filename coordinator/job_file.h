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
//   job.textproto:12:3: JobSpec.training has no field "replica"; did you mean "replicas"?
//   --set=optimizer.adam.learning_rate=abc: expected a number
//   training.replicas: is 0; expected at least 1

// Parses `text`; `file` is used in errors.
absl::StatusOr<v1::JobSpec> ParseJob(absl::string_view file, const std::string& text);

// Applies `path.to.field=value`. A repeated scalar takes a comma-separated list; `{}` selects an
// empty message; a member of a oneof takes the place of the one that was set. Elements of repeated
// messages are reached by number: `model.layers.1.dense.units=64`.
absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* job);

// Fills in every default of job.proto and checks every field that can be checked without the data:
// what is required, ranges, finiteness, names. Layer names are filled in as Keras does.
absl::Status FinishJob(v1::JobSpec* job);

// The three together.
absl::StatusOr<v1::JobSpec> ReadJobFile(const std::string& file,
                                        const std::vector<std::string>& overrides);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_FILE_H_
