// ps_server: holds a shard of the parameters of a training cluster.
#include <cstdio>
#include <string>

#include "common/base/exit_status.h"
#include "common/base/flags.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "ps_server/process.h"

int main(int argc, char** argv) {
  tandem::BlockTerminationSignals();
  tandem::PsServerOptions options;
  tandem::FlagSet flags(
      "ps_server --coordinator=HOST:PORT [flags]\n"
      "Holds a shard of the parameters: takes gradients, applies the optimizer, serves weights.\n"
      "Exit status: 0 the job ended or SIGTERM; 1 failed for good; 2 a bad flag;\n"
      "200 the coordinator stayed away (a restart may cure it).");
  flags.Add("coordinator", &options.coordinator, "the coordinator's address, HOST:PORT; required");
  flags.Add("listen", &options.listen, "address to open, HOST:PORT; port 0 picks a free one");
  flags.Add("advertise", &options.advertise,
            "address that others are told, HOST:PORT; empty: the one it listens on");
  flags.Add("coordinator_timeout", &options.coordinator_timeout_s,
            "seconds without an answer of the coordinator before giving up");
  absl::Status status = flags.Parse(argc, argv);
  if (flags.help_requested()) {
    std::fputs(flags.Help().c_str(), stdout);
    return tandem::kExitOk;
  }
  if (status.ok() && options.coordinator.empty()) {
    status = absl::InvalidArgumentError("--coordinator: is required, HOST:PORT");
  }
  tandem::SetLogName("ps_server");
  static auto* process = new tandem::PsServerProcess(options);  // Signals may come to the last.
  if (status.ok()) status = process->Start();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return tandem::kExitUsage;
  }
  std::printf("listening on %s\n", process->address().c_str());
  std::fflush(stdout);
  tandem::OnTerminationSignal([](int) { process->Terminate(); });
  return process->Run();
}
