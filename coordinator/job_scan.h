// Checks that hold for every value of a job, whatever its field.
#ifndef TANDEM_COORDINATOR_JOB_SCAN_H_
#define TANDEM_COORDINATOR_JOB_SCAN_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace tandem {

constexpr int kMaxStringBytes = 4096;    // A path's longest on Linux.
constexpr int kMaxListElements = 65536;  // Far more files or layers than a job has.

// INVALID_ARGUMENT, with the field's path, for a number that is not finite, a string that is too
// long, not UTF-8 (proto3 cannot send it) or that holds control characters, and a list that is too
// long.
absl::Status ScanMessage(const google::protobuf::Message& message);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_SCAN_H_
