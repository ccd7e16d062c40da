// ps_server: holds shards of the parameters of a training cluster.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/flags.h"
#include "common/base/program.h"
#include "ps_server/process.h"

namespace {

absl::Status Check(const tandem::PsServerOptions& options) {
  if (options.coordinator.empty()) {
    return absl::InvalidArgumentError("--coordinator: is required, HOST:PORT");
  }
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  if (options.advertise.empty() && (host == "0.0.0.0" || host == "[::]" || host.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise: is required with --listen=", options.listen,
                     ", an address that others cannot reach"));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
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
  flags.Add("state_dir", &options.state_dir,
            "folder of the job's state, the coordinator's own; empty: where the coordinator says");
  flags.Add("coordinator_timeout", &options.coordinator_timeout_s,
            "seconds without an answer of the coordinator before giving up");
  static tandem::PsServerProcess* process = nullptr;  // Signals may come to the last.
  return tandem::RunProgram(argc, argv,
                            {.name = "ps_server",
                             .flags = &flags,
                             .start =
                                 [&options] {
                                   absl::Status status = Check(options);
                                   if (!status.ok()) return status;
                                   process = new tandem::PsServerProcess(options);
                                   status = process->Start();
                                   if (status.ok()) tandem::PrintListening(process->address());
                                   return status;
                                 },
                             .run = [] { return process->Run(); },
                             .terminate = [] { process->Terminate(); }});
}
