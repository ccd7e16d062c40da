// worker: computes gradients for a training cluster.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/flags.h"
#include "common/base/program.h"
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
  static tandem::WorkerProcess* process = nullptr;  // Signals may come to the last.
  return tandem::RunProgram(argc, argv,
                            {.name = "worker",
                             .flags = &flags,
                             .start =
                                 [&options] {
                                   absl::Status status = Check(options);
                                   if (!status.ok()) return status;
                                   process = new tandem::WorkerProcess(options);
                                   return process->Start();
                                 },
                             .run = [] { return process->Run(); },
                             .terminate = [] { process->Terminate(); }});
}
