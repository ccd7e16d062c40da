#include "cli/checkpoint.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/exit_status.h"
#include "common/base/one_line.h"
#include "common/base/suggest.h"
#include "common/checkpoint/checkpoint.h"

namespace tandem {
namespace {

constexpr char kHelp[] =
    "tandem checkpoint list|inspect|verify DIR\n"
    "Looks at the checkpoints of a job and changes nothing.\n"
    "\n"
    "Commands:\n"
    "  list     One line for each, the oldest first: step, servers, size, and whether it is "
    "whole.\n"
    "  inspect  What is in them: the job, its variables, its files.\n"
    "  verify   Reads every byte and checks it; names each file that is damaged and why.\n"
    "\n"
    "DIR is a job's --state_dir, or the folder of one checkpoint in it.\n"
    "\n"
    "Exit status: 0 all is well; 1 a checkpoint is damaged or of a newer format, or there is "
    "none;\n"
    "2 a bad command line.\n";

int Refuse(const std::string& text) {
  std::fprintf(stderr, "%s\n", OneLine(text).c_str());
  return kExitUsage;
}

// A state directory, and the one checkpoint that is meant (empty: all).
struct Place {
  std::string state_dir, name;
};

// STATE_DIR, or STATE_DIR/checkpoints/NAME.
Place PlaceOf(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  const std::string name = slash == path.npos ? path : path.substr(slash + 1);
  const std::string above = slash == path.npos ? "" : path.substr(0, slash);
  const absl::string_view folder = "/checkpoints";
  if (!absl::StartsWith(name, "step-")) return {path, ""};
  if (above == folder.substr(1)) return {".", name};
  if (!absl::EndsWith(above, folder)) return {path, ""};
  return {above.substr(0, above.size() - folder.size()), name};
}

uint64_t Bytes(const v1::Manifest& manifest) {
  uint64_t bytes = 0;
  for (const v1::ManifestFile& file : manifest.files()) bytes += file.bytes();
  return bytes;
}

std::string Size(uint64_t bytes) {
  if (bytes < 10'000) return absl::StrCat(bytes, " B");
  if (bytes < 10'000'000) return absl::StrFormat("%.1f KB", static_cast<double>(bytes) / 1e3);
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

// The status's message names the file.
int Report(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  std::fprintf(stderr, "%s\n", OneLine(std::string(status.message())).c_str());
  return kExitFailed;
}

int List(const CheckpointEntry& entry) {
  if (!entry.status.ok()) {
    std::printf("%-20s  not usable\n", entry.name.c_str());
    return Report(entry.status);
  }
  const v1::Manifest& manifest = entry.manifest;
  std::printf("%-20s  step %llu  %d servers  %s\n", entry.name.c_str(),
              static_cast<unsigned long long>(manifest.step()), manifest.files_size(),
              Size(Bytes(manifest)).c_str());
  return kExitOk;
}

int Inspect(const CheckpointEntry& entry) {
  std::printf("%s\n", entry.name.c_str());
  if (!entry.status.ok()) return Report(entry.status);
  const v1::Manifest& manifest = entry.manifest;
  std::string text =
      absl::StrCat("  job        ", OneLine(manifest.job().name()), "\n  step       ",
                   manifest.step(), "\n  cpu_isa    ", OneLine(manifest.cpu_isa()),
                   "\n  slots      ", manifest.slots(), "\n  variables\n");
  for (const v1::Variable& variable : manifest.variables()) {
    absl::StrAppend(&text, "    ", OneLine(variable.name()), " [",
                    absl::StrJoin(variable.shape(), ", "), "]\n");
  }
  absl::StrAppend(&text, "  files\n");
  for (const v1::ManifestFile& file : manifest.files()) {
    absl::StrAppend(&text, "    ", file.name(), "  ", Size(file.bytes()), "  xxh3-128 ",
                    file.checksum(), "\n");
    for (const v1::Block& block : file.blocks()) {
      absl::StrAppend(&text, "      ", OneLine(block.variable()), "[", block.begin(), ":",
                      block.end(), "]\n");
    }
  }
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

int Verify(const std::string& state_dir, const CheckpointEntry& entry) {
  absl::Status status = entry.status;
  if (status.ok()) status = VerifyCheckpoint(RealFileSystem(), state_dir, entry.name);
  std::printf("%s  %s\n", entry.name.c_str(), status.ok() ? "ok" : "damaged");
  std::fflush(stdout);
  return Report(status);
}

int Run(absl::string_view command, const std::string& path) {
  const Place place = PlaceOf(path);
  const auto entries = ListCheckpoints(RealFileSystem(), place.state_dir);
  if (!entries.ok()) return Report(entries.status());
  int exit_status = kExitOk, shown = 0;
  for (const CheckpointEntry& entry : *entries) {
    if (!place.name.empty() && entry.name != place.name) continue;
    ++shown;
    const int status = command == "list"      ? List(entry)
                       : command == "inspect" ? Inspect(entry)
                                              : Verify(place.state_dir, entry);
    if (status != kExitOk) exit_status = status;
  }
  if (shown > 0) return exit_status;
  return Report(absl::NotFoundError(
      absl::StrCat(path, ": holds no checkpoint; expected the --state_dir of a job")));
}

}  // namespace

int CheckpointMain(int argc, char** argv) {
  if (argc < 2) return Refuse("expected a command; tandem checkpoint --help lists all");
  const absl::string_view command = argv[1];
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return kExitOk;
  }
  if (command != "list" && command != "inspect" && command != "verify") {
    const std::string nearest = Nearest(command, {"list", "inspect", "verify", "help"});
    return Refuse(absl::StrCat("unknown command \"", command, "\"; ",
                               nearest.empty() ? "tandem checkpoint --help lists all"
                                               : absl::StrCat("did you mean ", nearest, "?")));
  }
  if (argc == 3 && (argv[2] == absl::string_view("--help") || argv[2] == absl::string_view("-h"))) {
    std::fputs(kHelp, stdout);
    return kExitOk;
  }
  if (argc != 3) return Refuse(absl::StrCat("expected tandem checkpoint ", command, " DIR"));
  if (argv[2][0] == '-') return Refuse(absl::StrCat("unknown flag ", argv[2]));
  return Run(command, argv[2]);
}

}  // namespace tandem
