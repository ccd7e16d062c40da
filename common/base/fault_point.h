// Named places in the code where a test can make a process die, stand still or meet an error, at
// exactly that moment. Nothing happens unless --enable_fault_points was given.
#ifndef TANDEM_COMMON_BASE_FAULT_POINT_H_
#define TANDEM_COMMON_BASE_FAULT_POINT_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

namespace internal {
extern std::atomic<bool> fault_points_armed;
absl::Status ReachFaultPoint(const char* name);
}  // namespace internal

// Arms points: each of `points` is NAME=ACTION or NAME@N=ACTION, the N-th time (from 1) that NAME
// is reached. ACTION is `kill` (SIGKILL to itself), `stop` (SIGSTOP), or `error` (the point returns
// UNAVAILABLE; where the code has no error to return, it does nothing). INVALID_ARGUMENT names a
// point that does not exist. Before the threads begin.
absl::Status ArmFaultPoints(const std::vector<std::string>& points);

// Every point there is, sorted. A name that is reached and not listed is an error of the build's
// own tests.
const std::vector<std::string>& FaultPointNames();

// Reaches the point. Thread-safe; costs one relaxed load when nothing is armed.
inline absl::Status FaultPoint(const char* name) {
  if (!internal::fault_points_armed.load(std::memory_order_relaxed)) return absl::OkStatus();
  return internal::ReachFaultPoint(name);
}

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_FAULT_POINT_H_
