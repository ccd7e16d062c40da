#include "coordinator/progress.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"

namespace tandem {
namespace {

constexpr int64_t kRedrawMs = 100;
constexpr int64_t kMaxIntervalMs = 30000;
constexpr int64_t kWaitingMs = 5000;
constexpr int64_t kLossMs = 500;  // Someone who is missed is named sooner than at the start.
constexpr size_t kBarCells = 24;

}  // namespace

std::string Progress::Line(const Job& job, int64_t now_ms) const {
  if (waiting_) {
    return absl::StrCat("waiting for ", job.waiting_for(), ", ",
                        (now_ms - waiting_since_ms_) / 1000, " s so far");
  }
  if (job.phase() == v1::PHASE_EVALUATING) return "evaluating";
  const uint64_t done = job.steps_done(), total = job.plan().total_steps();
  const double seconds = job.training_seconds(now_ms);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string line;
  if (terminal_) {
    const size_t cells = kBarCells * done / total;
    line = absl::StrCat("[", std::string(cells, '#'), std::string(kBarCells - cells, '.'), "] ");
  }
  absl::StrAppendFormat(&line, "step %d of %d, epoch %d", done, total,
                        job.plan().epoch(std::min(done, total - 1)) + 1);
  if (job.running_loss() > 0) absl::StrAppendFormat(&line, ", loss %.4f", job.running_loss());
  if (rate > 0) {
    absl::StrAppendFormat(&line, ", %.0f steps/s, %.0f s left", rate,
                          static_cast<double>(total - done) / rate);
  }
  return line;
}

void Progress::Show(const Job& job, int64_t now_ms) {
  const bool waiting = !job.waiting_for().empty();
  if (waiting_since_ms_ < 0 || waiting != waiting_) {
    const bool at_start = waiting_since_ms_ < 0;
    waiting_ = waiting;
    waiting_since_ms_ = now_ms;
    if (!terminal_) next_ms_ = now_ms + (!waiting ? interval_ms_ : at_start ? kWaitingMs : kLossMs);
  }
  const bool reporting = job.phase() == v1::PHASE_REPORTING;
  if (now_ms < next_ms_ || job.phase() == v1::PHASE_ENDED || (reporting && !waiting)) return;
  if (terminal_) {
    std::fprintf(stderr, "\r\x1b[K%s", Line(job, now_ms).c_str());
    std::fflush(stderr);
    drawn_ = true;
    next_ms_ = now_ms + kRedrawMs;
    return;
  }
  Log(Line(job, now_ms));
  next_ms_ = now_ms + (waiting ? kWaitingMs : interval_ms_);
  if (!waiting) interval_ms_ = std::min(interval_ms_ * 3 / 2, kMaxIntervalMs);
}

void Progress::Clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace tandem
