// The LibSVM format: a line an example, `label index:value ...`; see libsvm_line.h.
#ifndef TANDEM_COMMON_DATA_LIBSVM_H_
#define TANDEM_COMMON_DATA_LIBSVM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/data/format.h"
#include "proto/job.pb.h"

namespace tandem {

// The dataset keeps the sparse form, and Read makes dense rows of num_features numbers. Where all
// labels of the files are -1 or +1, -1 becomes 0: with any other label among them -1 is a number
// like another, as in a regression. INVALID_ARGUMENT when options.num_features is 0.
absl::StatusOr<std::unique_ptr<Format>> MakeLibSvmFormat(const v1::LibSvm& options);

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_LIBSVM_H_
