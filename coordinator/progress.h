// How far a job is, for people: a bar that redraws itself on a terminal, a plain line now and then
// elsewhere.
#ifndef TANDEM_COORDINATOR_PROGRESS_H_
#define TANDEM_COORDINATOR_PROGRESS_H_

#include <cstdint>
#include <string>

#include "coordinator/job.h"

namespace tandem {

// Writes to stderr. Not thread-safe.
class Progress {
 public:
  // `terminal`: whether stderr is one.
  explicit Progress(bool terminal) : terminal_(terminal) {}

  // Call it often; it decides when there is something to say.
  void Show(const Job& job, int64_t now_ms);
  // Takes the bar away, so that other output begins on a line of its own.
  void Clear();

 private:
  std::string Line(const Job& job, int64_t now_ms) const;

  bool terminal_;
  bool drawn_ = false;
  int64_t next_ms_ = 0;
  bool waiting_ = true;
  int64_t waiting_since_ms_ = -1;
  int64_t interval_ms_ =
      1000;  // Between plain lines: grows, so that a long job does not fill a log.
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_PROGRESS_H_
