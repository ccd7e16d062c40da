// SIGTERM and SIGINT as events on a thread of their own.
#ifndef TANDEM_COMMON_BASE_SIGNALS_H_
#define TANDEM_COMMON_BASE_SIGNALS_H_

#include <functional>

namespace tandem {

// Blocks both signals in this thread and in those it starts: call it first in main. SIGPIPE is
// ignored.
void BlockTerminationSignals();

// Calls `on_signal(number)` on a thread of its own each time one comes, for the rest of the
// process.
void OnTerminationSignal(std::function<void(int)> on_signal);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_SIGNALS_H_
