#include "common/base/suggest.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {

int EditDistance(absl::string_view a, absl::string_view b) {
  // Rows i-2, i-1 and i of the usual table: row i holds the distances from a's first i letters.
  std::vector<int> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) current[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = previous[j - 1] + (a[i - 1] != b[j - 1]);
      current[j] = std::min({replace, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::string* nearest = nullptr;
  int least = 0;
  for (const std::string& candidate : candidates) {
    const int limit = std::max(1, static_cast<int>(candidate.size()) / 3);
    // The lengths alone rule most out, and keep the cost small whatever the user typed.
    if (name.size() > candidate.size() + limit) continue;
    const int distance =
        EditDistance(absl::AsciiStrToLower(name), absl::AsciiStrToLower(candidate));
    if (distance > limit || (nearest != nullptr && distance >= least)) continue;
    nearest = &candidate;
    least = distance;
  }
  return nearest == nullptr ? std::string() : *nearest;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(name, candidates);
  if (!nearest.empty()) return absl::StrCat("; did you mean \"", nearest, "\"?");
  return absl::StrCat("; expected one of ", absl::StrJoin(candidates, ", "));
}

}  // namespace tandem
