#include "common/data/format.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// 8 GiB of floats. A batch past it is a mistaken width or size, and would end in bad_alloc.
constexpr uint64_t kMaxBatchElements = uint64_t{1} << 31;

}  // namespace

uint64_t ExampleElements(const DatasetInfo& info) {
  uint64_t elements = 1;
  for (const uint64_t dimension : info.example_shape) elements *= dimension;
  return elements;
}

absl::Status PrepareBatch(const DatasetInfo& info, absl::Span<const uint64_t> indices,
                          Batch* batch) {
  for (const uint64_t index : indices) {
    if (index >= info.examples) {
      return absl::OutOfRangeError(
          absl::StrCat("example ", index, ": expected a number below ", info.examples));
    }
  }
  const uint64_t elements = ExampleElements(info);
  if (indices.size() > kMaxBatchElements / std::max<uint64_t>(elements, 1)) {
    return absl::ResourceExhaustedError(absl::StrCat("a batch of ", indices.size(), " examples of ",
                                                     elements, " numbers each: expected at most ",
                                                     kMaxBatchElements, " numbers in all"));
  }
  batch->size = indices.size();
  batch->features.resize(indices.size() * elements);
  batch->labels.resize(indices.size());
  return absl::OkStatus();
}

}  // namespace tandem
