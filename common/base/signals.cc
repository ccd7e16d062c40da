#include "common/base/signals.h"

#include <csignal>
#include <thread>
#include <utility>

namespace tandem {
namespace {

sigset_t TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void BlockTerminationSignals() {
  const sigset_t set = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void OnTerminationSignal(std::function<void(int)> on_signal) {
  std::thread([on_signal = std::move(on_signal)] {
    const sigset_t set = TerminationSignals();
    int number;
    while (sigwait(&set, &number) == 0) on_signal(number);
  }).detach();
}

}  // namespace tandem
