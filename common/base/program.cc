#include "common/base/program.h"

#include <cstdio>

#include "common/base/exit_status.h"
#include "common/base/log.h"
#include "common/base/signals.h"

namespace tandem {

int RunProgram(int argc, char** argv, const Program& program) {
  BlockTerminationSignals();
  SetLogName(program.name);
  absl::Status status = program.flags->Parse(argc, argv);
  if (program.flags->help_requested()) {
    std::fputs(program.flags->Help().c_str(), stdout);
    return kExitOk;
  }
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
