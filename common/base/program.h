// What every executable of the cluster does around its work: flags, --help, fault points, signals,
// exit statuses.
#ifndef TANDEM_COMMON_BASE_PROGRAM_H_
#define TANDEM_COMMON_BASE_PROGRAM_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/base/flags.h"

namespace tandem {

struct Program {
  std::string name;  // In log lines.
  FlagSet* flags;
  // Checks the flags and begins. An error is one line on stderr and exit status 2.
  std::function<absl::Status()> start;
  std::function<int()> run;  // The work; returns the exit status.
  std::function<void()>
      terminate;  // On SIGTERM or SIGINT, on another thread, until the process ends.
};

// The body of a main function.
int RunProgram(int argc, char** argv, const Program& program);

// Says where a server listens, on the line that scripts wait for.
void PrintListening(const std::string& address);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_PROGRAM_H_
