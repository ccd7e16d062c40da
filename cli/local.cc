#include "cli/local.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/local_cluster.h"
#include "common/base/exit_status.h"
#include "common/base/flags.h"
#include "common/base/log.h"

namespace tandem {
namespace {

// More processes than that on one machine are a slip.
constexpr int kMaxProcesses = 1000;

struct Flags {
  std::string job, summary, state_dir;
  std::vector<std::string> set;
  int servers = 1, spares = 0, workers = 1, threads = 0;
  int lease_timeout_ms = 5000;
};

absl::Status CheckCount(absl::string_view flag, int count, int least) {
  if (count >= least && count <= kMaxProcesses) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": is ", count, "; expected ", least, " to ", kMaxProcesses));
}

absl::Status Check(const Flags& flags) {
  if (flags.job.empty()) {
    return absl::InvalidArgumentError("--job: is required, a job file in text form");
  }
  absl::Status status = CheckCount("servers", flags.servers, 1);
  status.Update(CheckCount("spares", flags.spares, 0));
  status.Update(CheckCount("workers", flags.workers, 1));
  return status;
}

// The folder above this executable's: bazel-bin, runfiles or an installation, all laid out alike.
std::string Folder() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  std::string folder(path, size > 0 ? static_cast<size_t>(size) : 0);
  for (int level = 0; level < 2; ++level) folder.erase(std::min(folder.rfind('/'), folder.size()));
  return folder;
}

LocalClusterOptions ToOptions(const Flags& flags) {
  LocalClusterOptions options;
  options.folder = Folder();
  options.servers = flags.servers;
  options.spares = flags.spares;
  options.workers = flags.workers;
  options.lease_timeout_ms = flags.lease_timeout_ms;
  options.coordinator_flags = {absl::StrCat("--job=", flags.job),
                               absl::StrCat("--summary=", flags.summary),
                               absl::StrCat("--state_dir=", flags.state_dir)};
  for (const std::string& assignment : flags.set) {
    options.coordinator_flags.push_back(absl::StrCat("--set=", assignment));
  }
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = flags.threads > 0 ? flags.threads : std::max(1, processors / flags.workers);
  options.worker_flags = {absl::StrCat("--threads=", threads)};
  return options;
}

}  // namespace

int LocalMain(int argc, char** argv) {
  Flags flags;
  FlagSet set(
      "tandem local --job=FILE.textproto [flags]\n"
      "Trains one job on this machine: starts a coordinator, servers and workers as processes of\n"
      "their own, and ends them with the job. The job may come from a pipe, --job=/dev/stdin.\n"
      "Nobody is started again here: with --state_dir a job that was lost goes on when the same\n"
      "command is given again, also with other numbers of servers and workers.\n"
      "Exit status: 0 the job ended well; 1 it failed for good, or lost its workers or more\n"
      "servers than it had to spare; 2 a bad flag or job file, or --state_dir holds no good\n"
      "checkpoint; 200 the coordinator died (a restart may cure it).");
  set.Add("job", &flags.job, "the job, a text file of message JobSpec (proto/job.proto); required");
  set.Add("set", &flags.set, "changes a field of the job: path.to.field=value.");
  set.Add("servers", &flags.servers, "server processes, one shard of the parameters each");
  set.Add("spares", &flags.spares,
          "further server processes, to take the place of lost ones or hold standbys");
  set.Add("workers", &flags.workers, "worker processes");
  set.Add("threads", &flags.threads,
          "micro-batches that a worker computes at once; 0: its share of the processors");
  set.Add("summary", &flags.summary, "file to write the summary to, as JSON");
  set.Add("state_dir", &flags.state_dir,
          "folder for the journal and checkpoints; a job that was begun there goes on");
  set.Add("lease_timeout_ms", &flags.lease_timeout_ms,
          "milliseconds without a word after which a server or worker is taken for lost");
  absl::Status status = set.Parse(argc, argv);
  if (set.help_requested()) {
    std::fputs(set.Help().c_str(), stdout);
    return kExitOk;
  }
  if (status.ok()) status = Check(flags);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return kExitUsage;
  }
  SetLogName("tandem");
  return LocalCluster(ToOptions(flags)).Run();
}

}  // namespace tandem
