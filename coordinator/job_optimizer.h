// The part of FinishJob that is about the optimizer.
#ifndef TANDEM_COORDINATOR_JOB_OPTIMIZER_H_
#define TANDEM_COORDINATOR_JOB_OPTIMIZER_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace tandem {

// Fills in Keras's defaults and checks the ranges. All numbers must be finite.
absl::Status FinishOptimizer(v1::Optimizer* optimizer);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_OPTIMIZER_H_
