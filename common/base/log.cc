#include "common/base/log.h"

#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/one_line.h"

namespace tandem {
namespace {

// Leaked on purpose: threads may log while the process exits.
std::string& LogName() {
  static std::string* const name = new std::string("tandem");
  return *name;
}

std::mutex& WriteMutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

// One write a line where the kernel takes it whole, so that the lines of several processes that
// share a terminal or a file do not mix.
void WriteToStderr(absl::string_view line) {
  std::lock_guard<std::mutex> lock(WriteMutex());
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // Nobody is left to tell.
    line.remove_prefix(written);
  }
}

}  // namespace

void SetLogName(absl::string_view name) { LogName() = std::string(name); }

void Log(absl::string_view text) {
  std::string line = OneLine(
      absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%E3S", absl::Now(), absl::LocalTimeZone()), " ",
                   LogName(), ": ", text));
  line.push_back('\n');
  WriteToStderr(line);
}

bool LogEvery::Due(absl::Time now) {
  if (now < next_) return false;
  next_ = now + interval_;
  return true;
}

}  // namespace tandem
