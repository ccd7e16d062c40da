#include "cli/local_cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/child.h"
#include "common/base/exit_status.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

constexpr absl::string_view kListening = "listening on ";
// At the end of a job its processes end in any order: only after this long is one missed.
constexpr int64_t kGraceMs = 1500;
// How long servers and workers have after the coordinator's end before SIGTERM, and then SIGKILL.
// A worker that had not registered yet when a short job ended would look for the coordinator.
constexpr int64_t kDrainMs = 1000;
constexpr int64_t kTerminateMs = 3000;
// A coordinator that ends waits for members that are gone as long as their lease lasts.
constexpr int64_t kCoordinatorMarginMs = 3000;
constexpr int kTickMs = 100;

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

void WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

LocalCluster::LocalCluster(LocalClusterOptions options)
    : options_(std::move(options)), stage_ms_(NowMs()) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

LocalCluster::~LocalCluster() {
  if (output_ >= 0) close(output_);
  if (signals_ >= 0) close(signals_);
}

int LocalCluster::Run() {
  if (absl::Status status = StartCoordinator(); !status.ok()) Fail(status);
  while (AnyRunning()) {
    Wait();
    ReadSignals();
    ReadOutput();
    Reap();
    Watch();
    Press();
  }
  return exit_status_;
}

// ---- Starting ----

absl::Status LocalCluster::StartCoordinator() {
  int ends[2];
  if (signals_ < 0 || pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot open a pipe: ", std::strerror(errno)));
  }
  output_ = ends[0];
  fcntl(output_, F_SETFL, O_NONBLOCK);
  std::vector<std::string> argv = {absl::StrCat(options_.folder, "/coordinator/coordinator"),
                                   "--listen=127.0.0.1:0",
                                   absl::StrCat("--servers=", options_.servers),
                                   absl::StrCat("--lease_timeout_ms=", options_.lease_timeout_ms)};
  argv.insert(argv.end(), options_.coordinator_flags.begin(), options_.coordinator_flags.end());
  // The job may come from standard input.
  const absl::Status status =
      Start(Role::kCoordinator, "coordinator", std::move(argv), STDIN_FILENO, ends[1]);
  close(ends[1]);
  return status;
}

absl::Status LocalCluster::StartOthers(const std::string& address) {
  const std::string coordinator = absl::StrCat("--coordinator=", address);
  for (int k = 1; k <= options_.servers + options_.spares; ++k) {
    // All are said: the environment may hold those of another server.
    TANDEM_RETURN_IF_ERROR(
        Start(Role::kServer, absl::StrCat("server ", k),
              {absl::StrCat(options_.folder, "/ps_server/ps_server"), coordinator,
               "--listen=127.0.0.1:0", "--advertise=", "--state_dir="},
              -1, -1));
  }
  for (int k = 1; k <= options_.workers; ++k) {
    std::vector<std::string> argv = {absl::StrCat(options_.folder, "/worker/worker"), coordinator};
    argv.insert(argv.end(), options_.worker_flags.begin(), options_.worker_flags.end());
    TANDEM_RETURN_IF_ERROR(
        Start(Role::kWorker, absl::StrCat("worker ", k), std::move(argv), -1, -1));
  }
  return absl::OkStatus();
}

absl::Status LocalCluster::Start(Role role, std::string name, std::vector<std::string> argv,
                                 int input, int output) {
  absl::StatusOr<pid_t> pid = StartChild(argv, {input, output});
  if (!pid.ok()) return std::move(pid).status();
  processes_.push_back({role, std::move(name), *pid});
  return absl::OkStatus();
}

// ---- Events ----

void LocalCluster::Wait() {
  pollfd events[] = {{signals_, POLLIN, 0}, {output_, POLLIN, 0}};
  // While nothing can become due, only an event matters.
  const bool all_well =
      stage_ == Stage::kStarting ||
      (stage_ == Stage::kRunning && std::all_of(processes_.begin(), processes_.end(),
                                                [](const Process& p) { return p.ended_ms < 0; }));
  poll(events, 2, all_well ? -1 : kTickMs);
}

void LocalCluster::ReadSignals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) continue;  // Reap asks for all of them.
    if (stage_ == Stage::kStarting || stage_ == Stage::kRunning) {
      Stop();
    } else {
      SignalAll(SIGKILL);  // Asked twice.
    }
  }
}

void LocalCluster::ReadOutput() {
  char buffer[4096];
  while (output_ >= 0) {
    const ssize_t count = read(output_, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) {
      close(output_);
      output_ = -1;
      return;
    }
    absl::string_view text(buffer, static_cast<size_t>(count));
    if (!absl::EndsWith(first_line_, "\n")) {
      const size_t end = text.find('\n');
      absl::StrAppend(&first_line_, text.substr(0, end), end == text.npos ? "" : "\n");
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      absl::string_view address = first_line_;
      if (absl::ConsumeSuffix(&address, "\n") && absl::ConsumePrefix(&address, kListening) &&
          stage_ == Stage::kStarting) {
        stage_ = Stage::kRunning;
        if (absl::Status status = StartOthers(std::string(address)); !status.ok()) Fail(status);
      }
    }
    WriteAll(STDOUT_FILENO, text);
  }
}

void LocalCluster::Reap() {
  int wait_status;
  for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    for (Process& process : processes_) {
      if (process.pid != pid || process.ended_ms >= 0) continue;
      process.ended_ms = NowMs();
      process.wait_status = wait_status;
      if (process.role == Role::kCoordinator) OnCoordinatorEnd(wait_status);
    }
  }
}

void LocalCluster::OnCoordinatorEnd(int wait_status) {
  ReadOutput();  // What it wrote last.
  const bool was_told = stage_ == Stage::kStopping;
  if (WIFSIGNALED(wait_status) && !was_told) {
    Log(absl::StrCat("the coordinator ", DescribeEnd(wait_status)));
  }
  if (!failed_) {
    exit_status_ = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                   : was_told             ? kExitFailed
                                          : kExitRetriable;
  }
  stage_ = Stage::kDraining;
  stage_ms_ = NowMs();
  // Members know that the job was told to end; who is not one yet would wait for the coordinator.
  if (was_told) Terminate();
}

// ---- Judging ----

void LocalCluster::Watch() {
  if (stage_ != Stage::kRunning) return;
  const int64_t grace = GraceMs();
  for (Process& process : processes_) {
    const bool is_sure = WIFSIGNALED(process.wait_status) || NowMs() - process.ended_ms >= grace;
    if (process.ended_ms < 0 || process.told || !is_sure) continue;
    process.told = true;
    Log(absl::StrCat(process.name, " (pid ", process.pid, ") ", DescribeEnd(process.wait_status)));
  }
  if (std::string lost = Lost(NowMs() - grace); !lost.empty()) {
    Fail(absl::AbortedError(absl::StrCat("the job cannot go on without ", lost, "; ending it")));
  }
}

int64_t LocalCluster::GraceMs() const {
  const bool all_left =
      std::all_of(processes_.begin(), processes_.end(), [](const Process& process) {
        return process.role == Role::kCoordinator ||
               (process.ended_ms >= 0 && WIFEXITED(process.wait_status) &&
                WEXITSTATUS(process.wait_status) == kExitOk);
      });
  return all_left ? options_.lease_timeout_ms + kCoordinatorMarginMs : kGraceMs;
}

std::string LocalCluster::Lost(int64_t before) const {
  int servers = 0, workers = 0;
  std::string last_server;
  for (const Process& process : processes_) {
    const bool is_gone = process.ended_ms >= 0 && process.ended_ms <= before;
    if (process.role == Role::kServer && is_gone) last_server = process.name;
    if (process.role == Role::kServer && !is_gone) ++servers;
    if (process.role == Role::kWorker && !is_gone) ++workers;
  }
  if (servers < options_.servers) return last_server;
  return workers > 0 ? "" : options_.workers == 1 ? "its worker" : "any of its workers";
}

void LocalCluster::Press() {
  const int64_t elapsed = NowMs() - stage_ms_;
  if (stage_ == Stage::kStopping && elapsed >= options_.lease_timeout_ms + kCoordinatorMarginMs) {
    SignalAll(SIGKILL);
  } else if (stage_ == Stage::kDraining && elapsed >= kDrainMs + kTerminateMs) {
    SignalAll(SIGKILL);
  } else if (stage_ == Stage::kDraining && elapsed >= kDrainMs && !terminated_) {
    Terminate();
  }
}

// ---- Ending ----

void LocalCluster::Stop() {
  stage_ = Stage::kStopping;
  stage_ms_ = NowMs();
  if (!processes_.empty() && processes_.front().ended_ms < 0) {
    kill(processes_.front().pid, SIGTERM);
  }
}

void LocalCluster::Fail(const absl::Status& status) {
  Log(status.message());
  exit_status_ = kExitFailed;
  failed_ = true;
  Stop();
}

void LocalCluster::Terminate() {
  terminated_ = true;
  SignalAll(SIGTERM);
}

void LocalCluster::SignalAll(int signal) {
  for (const Process& process : processes_) {
    if (process.ended_ms < 0) kill(process.pid, signal);
  }
}

bool LocalCluster::AnyRunning() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.ended_ms < 0; });
}

}  // namespace tandem
