#include "common/data/dataset.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/data/file_list.h"
#include "common/data/format.h"
#include "common/data/idx.h"
#include "common/data/libsvm.h"

namespace tandem {
namespace {

absl::StatusOr<std::unique_ptr<Format>> MakeFormat(const v1::Dataset& spec) {
  switch (spec.format_case()) {
    case v1::Dataset::kIdx:
      return MakeIdxFormat(spec.idx());
    case v1::Dataset::kLibsvm:
      return MakeLibSvmFormat(spec.libsvm());
    case v1::Dataset::FORMAT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "dataset: the format is missing: expected dataset.idx or dataset.libsvm");
}

// At least one file.
absl::StatusOr<std::vector<std::string>> Files(const v1::Dataset& spec, Split split) {
  const bool train = split == Split::kTrain;
  const auto& patterns = train ? spec.train_files() : spec.test_files();
  const absl::string_view field = train ? "dataset.train_files" : "dataset.test_files";
  if (patterns.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": expected at least one file"));
  }
  for (const std::string& pattern : patterns) {
    if (pattern.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": expected paths, found \"\""));
    }
  }
  return ExpandGlobs({patterns.begin(), patterns.end()});
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Dataset>> OpenDataset(const v1::Dataset& spec, Split split) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Format> format, MakeFormat(spec));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files, Files(spec, split));
  return format->Open(files);
}

absl::StatusOr<DatasetInfo> ScanDataset(const v1::Dataset& spec, Split split) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Format> format, MakeFormat(spec));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files, Files(spec, split));
  return format->Scan(files);
}

}  // namespace tandem
