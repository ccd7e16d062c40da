// Examples by number: what a job's files hold, with random access.
#ifndef TANDEM_COMMON_DATA_DATASET_H_
#define TANDEM_COMMON_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace tandem {

// Examples side by side: `features` is row-major [size, example elements]. Reused from call to call
// so that its memory is, too.
struct Batch {
  size_t size = 0;
  std::vector<float> features;
  std::vector<float> labels;  // One an example; class numbers are whole.
};

struct DatasetInfo {
  uint64_t examples = 0;
  std::vector<uint64_t> example_shape;  // Without the batch axis, for example {28, 28}.
  float min_label = 0, max_label = 0;
};

// Immutable after opening, hence thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  // Fills *batch with the examples `indices` (each below info().examples), in that order; an
  // example may be there more than once. OUT_OF_RANGE for a number past the end, RESOURCE_EXHAUSTED
  // for a batch of more than 2^31 numbers.
  virtual absl::Status Read(absl::Span<const uint64_t> indices, Batch* batch) const = 0;
};

// Which of a job's lists of files.
enum class Split { kTrain, kTest };

// Opens all files of `split`, reads and checks every byte, and keeps what Read needs in memory.
// Errors name the file, and the line or offset, and what was expected:
//   NOT_FOUND            a file or glob that matches nothing
//   INVALID_ARGUMENT     a file that is not of the format, is cut short, or disagrees with another;
//                        no file at all, no format
// Whatever else the system answers (no permission, say) comes with the file's name, too.
absl::StatusOr<std::unique_ptr<const Dataset>> OpenDataset(const v1::Dataset& spec, Split split);

// The same checks and the same errors in O(1) memory; nothing is kept.
absl::StatusOr<DatasetInfo> ScanDataset(const v1::Dataset& spec, Split split);

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_DATASET_H_
