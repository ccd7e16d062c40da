// tandem: the command line of people who train on this machine.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/checkpoint.h"
#include "cli/local.h"
#include "common/base/exit_status.h"
#include "common/base/one_line.h"
#include "common/base/suggest.h"

namespace {

constexpr char kHelp[] =
    "tandem COMMAND [flags]\n"
    "Trains models on a cluster of parameter servers.\n"
    "\n"
    "Commands:\n"
    "  local       Trains one job on this machine, on processes that end with it.\n"
    "  checkpoint  Lists, inspects and verifies the checkpoints of a job.\n"
    "\n"
    "`tandem COMMAND --help` lists the command's flags. A cluster over several machines is "
    "started\n"
    "by hand: `coordinator --help`, `ps_server --help`, `worker --help`.\n";

int Refuse(const std::string& text) {
  std::fprintf(stderr, "%s\n", tandem::OneLine(text).c_str());
  return tandem::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return Refuse("expected a command; tandem --help lists all");
  const absl::string_view command = argv[1];
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return tandem::kExitOk;
  }
  if (command == "local") return tandem::LocalMain(argc - 1, argv + 1);
  if (command == "checkpoint") return tandem::CheckpointMain(argc - 1, argv + 1);
  const std::string nearest = tandem::Nearest(command, {"local", "checkpoint", "help"});
  return Refuse(absl::StrCat(
      "unknown command \"", command, "\"; ",
      nearest.empty() ? "tandem --help lists all" : absl::StrCat("did you mean ", nearest, "?")));
}
