// What a file format has to do to be a dataset. A new format is one implementation of Format and
// one line in dataset.cc.
#ifndef TANDEM_COMMON_DATA_FORMAT_H_
#define TANDEM_COMMON_DATA_FORMAT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/data/dataset.h"

namespace tandem {

// Both functions make one and the same pass over `files`, in order, so that they find the same
// errors; see dataset.h for which. `files` are paths without wildcards, at least one. Thread-safe.
class Format {
 public:
  virtual ~Format() = default;
  virtual absl::StatusOr<std::unique_ptr<const Dataset>> Open(
      const std::vector<std::string>& files) const = 0;
  // In memory that does not grow with the files.
  virtual absl::StatusOr<DatasetInfo> Scan(const std::vector<std::string>& files) const = 0;
};

// Numbers in one example.
uint64_t ExampleElements(const DatasetInfo& info);

// The first part of every Read: sizes *batch for `indices` of a dataset with `info`; what its
// elements hold is unspecified. OUT_OF_RANGE for an index past the end, RESOURCE_EXHAUSTED for a
// batch too large to be meant.
absl::Status PrepareBatch(const DatasetInfo& info, absl::Span<const uint64_t> indices,
                          Batch* batch);

// Widens info's range of labels to `label`; the first of a dataset begins the range. Call it before
// the example is counted.
inline void AddLabel(float label, DatasetInfo* info) {
  if (info->examples == 0 || label < info->min_label) info->min_label = label;
  if (info->examples == 0 || label > info->max_label) info->max_label = label;
}

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_FORMAT_H_
