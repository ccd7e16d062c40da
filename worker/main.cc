// worker: computes gradients for a training cluster.
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_status.h"
#include "common/base/flags.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "worker/process.h"

namespace {

absl::Status Check(const tandem::WorkerProcessOptions& options) {
  if (options.coordinator.empty()) {
    return absl::InvalidArgumentError("--coordinator: is required, HOST:PORT");
  }
  if (options.device != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device=", options.device, ": this build computes on cpu alone"));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  tandem::BlockTerminationSignals();
  tandem::WorkerProcessOptions options;
  tandem::FlagSet flags(
      "worker --coordinator=HOST:PORT [flags]\n"
      "Computes gradients: leases micro-batches, pulls weights, pushes gradients.\n"
      "Exit status: 0 the job ended or SIGTERM; 1 failed for good; 2 a bad flag;\n"
      "200 the coordinator stayed away (a restart may cure it).");
  flags.Add("coordinator", &options.coordinator, "the coordinator's address, HOST:PORT; required");
  flags.Add("device", &options.device, "what computes: cpu");
  flags.Add("threads", &options.threads,
            "micro-batches computed at once, one thread each; 0: one a processor");
  flags.Add("coordinator_timeout", &options.coordinator_timeout_s,
            "seconds without an answer of the coordinator before giving up");
  absl::Status status = flags.Parse(argc, argv);
  if (flags.help_requested()) {
    std::fputs(flags.Help().c_str(), stdout);
    return tandem::kExitOk;
  }
  if (status.ok()) status = Check(options);
  tandem::SetLogName("worker");
  static auto* process = new tandem::WorkerProcess(options);  // Signals may come to the last.
  if (status.ok()) status = process->Start();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return tandem::kExitUsage;
  }
  tandem::OnTerminationSignal([](int) { process->Terminate(); });
  return process->Run();
}
