// Small jobs, batches and weights for tests.
#ifndef TANDEM_TESTS_COMMON_NN_JOBS_H_
#define TANDEM_TESTS_COMMON_NN_JOBS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/dataset.h"
#include "common/nn/model.h"
#include "proto/job.pb.h"

namespace tandem {

// Aborts on text that is not a JobSpec.
v1::JobSpec JobOf(const std::string& text);

// Aborts, with the reason, if the model cannot be created.
std::unique_ptr<const Model> ModelOf(const v1::JobSpec& job, const std::vector<uint64_t>& shape);

// Features in [-1, 1) and labels below `classes`, both functions of `seed`.
Batch RandomBatch(size_t size, size_t features, int classes, uint64_t seed);

// The initial weights, flat.
std::vector<float> InitialWeights(const Model& model, uint64_t seed);

}  // namespace tandem

#endif  // TANDEM_TESTS_COMMON_NN_JOBS_H_
