#include "common/base/program.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/exit_status.h"
#include "common/base/fault_point.h"
#include "common/base/log.h"
#include "common/base/signals.h"

namespace tandem {
namespace {

// Each value is a list with commas.
absl::Status Arm(const std::vector<std::string>& lists) {
  for (const std::string& list : lists) {
    const std::vector<std::string> points = absl::StrSplit(list, ',', absl::SkipEmpty());
    if (absl::Status status = ArmFaultPoints(points); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--enable_fault_points: ", std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int RunProgram(int argc, char** argv, const Program& program) {
  BlockTerminationSignals();
  SetLogName(program.name);
  std::vector<std::string> fault_points;
  program.flags->Add("enable_fault_points", &fault_points,
                     "for tests: NAME=kill, stop or error; or NAME@N=...: the N-th time only; "
                     "separated by commas.");
  absl::Status status = program.flags->Parse(argc, argv);
  if (program.flags->help_requested()) {
    std::fputs(program.flags->Help().c_str(), stdout);
    return kExitOk;
  }
  if (status.ok()) status = Arm(fault_points);
  if (status.ok()) status = program.start();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return kExitUsage;
  }
  OnTerminationSignal([terminate = program.terminate](int) { terminate(); });
  return program.run();
}

void PrintListening(const std::string& address) {
  std::printf("listening on %s\n", address.c_str());
  std::fflush(stdout);
}

}  // namespace tandem
