// One line a message on stderr: `2026-12-01 18:30:12.345 worker 7: text`. Thread-safe.
#ifndef TANDEM_COMMON_BASE_LOG_H_
#define TANDEM_COMMON_BASE_LOG_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// Who speaks, for example "worker". Call it once, before threads start.
void SetLogName(absl::string_view name);

// Writes `text` (newlines and other control characters become spaces: a message is one line).
void Log(absl::string_view text);

// Says a thing at most once an interval, for example whom a process waits for. Not thread-safe.
class LogEvery {
 public:
  explicit LogEvery(absl::Duration interval) : interval_(interval) {}
  // True when it is time to speak again; `now` is any clock that does not go back.
  bool Due(absl::Time now);

 private:
  absl::Duration interval_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_LOG_H_
