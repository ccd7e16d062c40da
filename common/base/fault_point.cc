#include "common/base/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"

namespace tandem {

std::atomic<bool> internal::fault_points_armed = false;

namespace {

const std::vector<std::string>& Actions() {
  static const auto& actions = *new std::vector<std::string>{"error", "kill", "stop"};
  return actions;
}

struct Armed {
  std::string name, action;
  uint64_t at = 0;  // Which time acts; 0: each.
  uint64_t reached = 0;
};

struct State {
  absl::Mutex mutex;
  std::vector<Armed> armed ABSL_GUARDED_BY(mutex);
};

State& TheState() {
  static State& state = *new State;
  return state;
}

absl::Status CheckKnown(const std::string& point, const char* what, const std::string& word,
                        const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("fault point \"", point, "\": ", what, " \"", word,
                                                 "\" is unknown", DidYouMean(word, known)));
}

absl::StatusOr<Armed> Parse(const std::string& point) {
  const std::pair<std::string, std::string> sides = absl::StrSplit(point, absl::MaxSplits('=', 1));
  const std::pair<std::string, std::string> place =
      absl::StrSplit(sides.first, absl::MaxSplits('@', 1));
  Armed armed{place.first, sides.second};
  TANDEM_RETURN_IF_ERROR(CheckKnown(point, "the name", armed.name, FaultPointNames()));
  TANDEM_RETURN_IF_ERROR(CheckKnown(point, "the action", armed.action, Actions()));
  const bool counted = sides.first.find('@') != std::string::npos;
  if (counted && (!absl::SimpleAtoi(place.second, &armed.at) || armed.at == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("fault point \"", point, "\": expected a number from 1 after the @"));
  }
  return armed;
}

}  // namespace

const std::vector<std::string>& FaultPointNames() {
  static const auto& names = *new std::vector<std::string>{"apply",
                                                           "checkpoint_mid_write",
                                                           "checkpoint_renamed",
                                                           "checkpoint_written",
                                                           "journal_appended",
                                                           "manifest_written",
                                                           "push_sent",
                                                           "standby_acknowledged",
                                                           "standby_applied"};
  return names;
}

absl::Status ArmFaultPoints(const std::vector<std::string>& points) {
  State& state = TheState();
  absl::MutexLock lock(&state.mutex);
  for (const std::string& point : points) {
    TANDEM_ASSIGN_OR_RETURN(Armed armed, Parse(point));
    state.armed.push_back(std::move(armed));
  }
  internal::fault_points_armed = !state.armed.empty();
  return absl::OkStatus();
}

absl::Status internal::ReachFaultPoint(const char* name) {
  std::string action;
  {
    State& state = TheState();
    absl::MutexLock lock(&state.mutex);
    for (Armed& armed : state.armed) {
      if (armed.name != name) continue;
      ++armed.reached;
      if (armed.at == 0 || armed.at == armed.reached) action = armed.action;
    }
  }
  if (action.empty()) return absl::OkStatus();
  Log(absl::StrCat("fault point ", name, ": ", action));
  if (action == "kill") kill(getpid(), SIGKILL);
  if (action == "stop") kill(getpid(), SIGSTOP);
  if (action != "error") return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("fault point ", name));
}

}  // namespace tandem
