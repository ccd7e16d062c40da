// Child processes that never outlive this one.
#ifndef TANDEM_CLI_CHILD_H_
#define TANDEM_CLI_CHILD_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem {

// What a child has as standard input and output; -1: /dev/null. Standard error is this process's.
struct ChildFiles {
  int input = -1;
  int output = -1;
};

// Runs argv[0] (a path) with no signal blocked. The kernel kills the child when this process ends,
// however it ends. Call it in a process of one thread: the kernel counts the end of the thread that
// called. UNAVAILABLE names the file and why it does not run.
absl::StatusOr<pid_t> StartChild(const std::vector<std::string>& argv, const ChildFiles& files);

// How a child ended, by its wait status: "was killed by signal 9", "exited with status 3".
std::string DescribeEnd(int wait_status);

}  // namespace tandem

#endif  // TANDEM_CLI_CHILD_H_
