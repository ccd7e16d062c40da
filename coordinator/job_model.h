// The part of FinishJob that is about the model.
#ifndef TANDEM_COORDINATOR_JOB_MODEL_H_
#define TANDEM_COORDINATOR_JOB_MODEL_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace tandem {

// Names the layers, fills in their defaults and checks their fields. Shapes are not known here.
absl::Status FinishModel(v1::Model* model);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_MODEL_H_
