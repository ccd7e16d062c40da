#include "common/data/file_list.h"

#include <glob.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

absl::Status AppendMatches(const std::string& pattern, std::vector<std::string>* files) {
  glob_t matches = {};
  const absl::Cleanup free_matches = [&matches] { globfree(&matches); };
  // glob's own order depends on the locale.
  const int error = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
  if (error == GLOB_NOMATCH) {
    return absl::NotFoundError(absl::StrCat(pattern, ": expected a match, found none"));
  }
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat(pattern, ": cannot be searched (glob error ", error, ")"));
  }
  const size_t begin = files->size();
  files->insert(files->end(), matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  std::sort(files->begin() + begin, files->end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandGlobs(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    if (pattern.find_first_of("*?[") == std::string::npos) {
      files.push_back(pattern);
    } else {
      TANDEM_RETURN_IF_ERROR(AppendMatches(pattern, &files));
    }
  }
  return files;
}

}  // namespace tandem
