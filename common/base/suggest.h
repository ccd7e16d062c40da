// Near matches for misspelt names, so that an error can say what was probably meant.
#ifndef TANDEM_COMMON_BASE_SUGGEST_H_
#define TANDEM_COMMON_BASE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// The least number of single-letter edits from `a` to `b`: a letter put in, left out or replaced,
// or two neighbours swapped.
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate nearest to `name` without regard to case, the first of several; empty when none is
// near, which means within a third of the candidate's letters (and at least one).
std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates);

// What follows `"rleu" is unknown`: `; did you mean "relu"?`, or, when none is near, all of them:
// `; expected one of linear, relu`.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_SUGGEST_H_
