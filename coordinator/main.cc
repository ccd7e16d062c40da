// coordinator: runs one training job on a cluster.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "common/base/flags.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "coordinator/job_file.h"
#include "coordinator/process.h"

namespace {

struct Flags {
  std::string job;
  std::vector<std::string> set;
  int lease_timeout_ms = 5000;
  tandem::CoordinatorOptions options;
};

absl::StatusOr<tandem::PreparedJob> Prepare(Flags* flags) {
  if (flags->job.empty()) {
    return absl::InvalidArgumentError("--job: is required, a job file in text form");
  }
  tandem::JobOptions& job = flags->options.job;
  if (job.servers < 1) return absl::InvalidArgumentError("--servers: is 0; expected at least 1");
  if (job.min_workers < 1) {
    return absl::InvalidArgumentError("--min_workers: is 0; expected at least 1");
  }
  if (flags->lease_timeout_ms < 100) {
    return absl::InvalidArgumentError("--lease_timeout_ms: expected at least 100");
  }
  job.lease_timeout_ms = flags->lease_timeout_ms;
  job.hold_ms = std::min<int64_t>(job.hold_ms, job.lease_timeout_ms / 4);
  job.disconnect_grace_ms = std::min<int64_t>(job.disconnect_grace_ms, job.lease_timeout_ms);
  TANDEM_ASSIGN_OR_RETURN(tandem::v1::JobSpec spec, tandem::ReadJobFile(flags->job, flags->set));
  std::string& state_dir = flags->options.state_dir;
  if (!state_dir.empty()) {
    // Servers are told of it, and may have been started elsewhere.
    std::error_code error;
    state_dir = std::filesystem::absolute(state_dir, error).lexically_normal().string();
    if (error) return absl::InvalidArgumentError("--state_dir: " + error.message());
  }
  return tandem::PrepareJob(std::move(spec), flags->options);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  tandem::FlagSet set(
      "coordinator --job=FILE.textproto [flags]\n"
      "Runs one training job: waits for servers and workers, gives out work, evaluates, sums up.\n"
      "Exit status: 0 the job ended well; 1 it failed for good; 2 a bad flag or job file.");
  set.Add("job", &flags.job, "the job, a text file of message JobSpec (proto/job.proto); required");
  set.Add("set", &flags.set, "changes a field of the job: path.to.field=value; may be repeated");
  set.Add("listen", &flags.options.listen, "address to open, HOST:PORT; port 0 picks a free one");
  set.Add("servers", &flags.options.job.servers,
          "shards; the job starts when as many servers are there");
  set.Add("min_workers", &flags.options.job.min_workers, "workers to wait for before the start");
  set.Add("summary", &flags.options.summary, "file to write the summary to, as JSON");
  set.Add(
      "state_dir", &flags.options.state_dir,
      "folder for the journal and checkpoints, seen from every server under the same path; a job "
      "that was begun there goes on");
  set.Add("lease_timeout_ms", &flags.lease_timeout_ms,
          "milliseconds without a word after which a server or worker is taken for lost");
  static tandem::CoordinatorProcess* process = nullptr;  // Signals may come to the last.
  return tandem::RunProgram(argc, argv,
                            {.name = "coordinator",
                             .flags = &set,
                             .start =
                                 [&flags] {
                                   absl::StatusOr<tandem::PreparedJob> job = Prepare(&flags);
                                   if (!job.ok()) return job.status();
                                   process = new tandem::CoordinatorProcess(flags.options,
                                                                            *std::move(job));
                                   absl::Status status = process->Start();
                                   if (status.ok()) tandem::PrintListening(process->address());
                                   return status;
                                 },
                             .run = [] { return process->Run(); },
                             .terminate = [] { process->Terminate(); }});
}
