// How a process ends; scripts rely on these numbers.
#ifndef TANDEM_COMMON_BASE_EXIT_STATUS_H_
#define TANDEM_COMMON_BASE_EXIT_STATUS_H_

namespace tandem {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;       // For good: a non-finite loss, bad data.
constexpr int kExitUsage = 2;        // A flag or the job file; one line on stderr says which.
constexpr int kExitRetriable = 200;  // A restart may cure it.

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_EXIT_STATUS_H_
