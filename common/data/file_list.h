// From the paths and globs of a job to files.
#ifndef TANDEM_COMMON_DATA_FILE_LIST_H_
#define TANDEM_COMMON_DATA_FILE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem {

// The files that `patterns` name, in the order given, the matches of one glob (* ? [], and \ before
// one of them to mean itself) in byte order whatever the locale. NOT_FOUND, naming the pattern, for
// one that matches nothing. A pattern without wildcards is a path as it stands, and is found or not
// when it is opened.
absl::StatusOr<std::vector<std::string>> ExpandGlobs(const std::vector<std::string>& patterns);

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_FILE_LIST_H_
