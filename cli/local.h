// `tandem local`: trains one job on a cluster of processes on this machine.
#ifndef TANDEM_CLI_LOCAL_H_
#define TANDEM_CLI_LOCAL_H_

namespace tandem {

// argv[0] is the subcommand's name. The exit status.
int LocalMain(int argc, char** argv);

}  // namespace tandem

#endif  // TANDEM_CLI_LOCAL_H_
