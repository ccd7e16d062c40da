#include "cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

bool Put(int fd, int as) {
  if (fd < 0) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  return fd == as || dup2(fd, as) == as;
}

// In the child. Returns only when something went wrong, with errno set.
void Become(char** argv, const ChildFiles& files, pid_t parent) {
  // The parent may have ended before the kernel was asked to watch it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (getppid() != parent) _exit(1);
  if (!Put(files.input, STDIN_FILENO) || !Put(files.output, STDOUT_FILENO)) return;
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(argv[0], argv);
}

}  // namespace

absl::StatusOr<pid_t> StartChild(const std::vector<std::string>& argv, const ChildFiles& files) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  // Closed without a word when the child runs; otherwise it says why not.
  int report[2];
  int error = 0;
  if (pipe2(report, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat(argv[0], ": ", std::strerror(errno)));
  }
  const pid_t pid = fork();
  if (pid == 0) {
    Become(arguments.data(), files, parent);
    error = errno;
    const ssize_t written = write(report[1], &error, sizeof(error));
    _exit(written == sizeof(error) ? 1 : 2);
  }
  if (pid < 0) error = errno;
  close(report[1]);
  while (pid > 0 && read(report[0], &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  close(report[0]);
  if (error == 0) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  return absl::UnavailableError(
      absl::StrCat(argv[0], ": cannot be started: ", std::strerror(error)));
}

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::StrCat("was killed by signal ", WTERMSIG(wait_status));
  }
  return absl::StrCat("exited with status ", WEXITSTATUS(wait_status));
}

}  // namespace tandem
