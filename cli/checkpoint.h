// tandem checkpoint: what a state directory holds.
#ifndef TANDEM_CLI_CHECKPOINT_H_
#define TANDEM_CLI_CHECKPOINT_H_

namespace tandem {

// argv[0] is "checkpoint". The process's exit status.
int CheckpointMain(int argc, char** argv);

}  // namespace tandem

#endif  // TANDEM_CLI_CHECKPOINT_H_
