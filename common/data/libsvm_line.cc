#include "common/data/libsvm_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

constexpr size_t kMaxQuotedBytes = 40;  // Of a word in a message.

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// The error of the word at `begin`.
absl::Status WordError(const char* begin, const char* end, const std::string& expected) {
  const size_t size = std::find_if(begin, end, IsBlank) - begin;
  const absl::string_view shown(begin, std::min(size, kMaxQuotedBytes));
  return absl::InvalidArgumentError(absl::StrCat("\"", absl::CHexEscape(shown),
                                                 size > kMaxQuotedBytes ? "...\"" : "\"",
                                                 ": expected ", expected));
}

// Reads a finite number that ends the word; null when there is none. Too small for a float is 0,
// too large is an error, like `nan` and `inf`, which would poison the weights.
const char* ParseFloat(const char* p, const char* end, float* value) {
  if (p == end) return nullptr;
  // A single digit is by far the most frequent value, and label, in these files.
  if (*p >= '0' && *p <= '9' && (p + 1 == end || IsBlank(p[1]))) {
    *value = static_cast<float>(*p - '0');
    return p + 1;
  }
  // from_chars takes no plus sign; a second sign after it is no number.
  if (*p == '+' && (++p == end || *p == '-')) return nullptr;
  std::from_chars_result result = std::from_chars(p, end, *value);
  if (result.ec == std::errc::result_out_of_range) {
    // Abseil's tells which end of the range it is: it gives the largest number or (nearly) 0.
    absl::from_chars(p, end, *value);
    if (std::abs(*value) < 1) result.ec = std::errc();
  }
  if (result.ec != std::errc() || !std::isfinite(*value)) return nullptr;
  return result.ptr == end || IsBlank(*result.ptr) ? result.ptr : nullptr;
}

absl::Status IndexError(const char* word, const char* end, const LibSvmLimits& limits) {
  return WordError(word, end,
                   absl::StrCat("an index from ", limits.index_base, " to ",
                                uint64_t{limits.index_base} + limits.num_features - 1));
}

// Parses the word `index:value` at `word` onto the end of *row; returns where it ends.
absl::StatusOr<const char*> ParsePair(const char* word, const char* end, const LibSvmLimits& limits,
                                      LibSvmRow* row) {
  uint64_t index = 0;
  const auto [colon, error] = std::from_chars(word, end, index);
  if (colon == word || colon == end || *colon != ':') {
    return WordError(word, end, "index:value with a whole number before the colon");
  }
  // An index below the base wraps around to one that is too large.
  const uint64_t column = index - limits.index_base;
  if (error != std::errc() || column >= limits.num_features) return IndexError(word, end, limits);
  float value = 0;
  const char* next = ParseFloat(colon + 1, end, &value);
  if (next == nullptr) {
    return WordError(word, end, "index:value with a finite number after the colon");
  }
  row->columns.push_back(static_cast<uint32_t>(column));
  row->values.push_back(value);
  return next;
}

absl::Status CheckDistinct(const LibSvmLimits& limits, std::vector<uint32_t> columns) {
  std::sort(columns.begin(), columns.end());
  const auto twice = std::adjacent_find(columns.begin(), columns.end());
  if (twice == columns.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("index ", uint64_t{*twice} + limits.index_base,
                                                 " is there twice: expected each index once"));
}

}  // namespace

absl::StatusOr<bool> ParseLibSvmLine(absl::string_view line, const LibSvmLimits& limits,
                                     LibSvmRow* row) {
  const char* p = line.data();
  const char* end = p + line.size();
  if (const void* comment = std::memchr(p, '#', line.size())) {
    end = static_cast<const char*>(comment);
  }
  const auto skip_blanks = [&] {
    while (p != end && IsBlank(*p)) ++p;
  };
  skip_blanks();
  if (p == end) return false;

  const char* next = ParseFloat(p, end, &row->label);
  if (next == nullptr) return WordError(p, end, "a finite number as the label");
  row->columns.clear();
  row->values.clear();
  bool ascending = true;
  for (p = next, skip_blanks(); p != end; skip_blanks()) {
    TANDEM_ASSIGN_OR_RETURN(p, ParsePair(p, end, limits, row));
    const size_t size = row->columns.size();
    ascending &= size < 2 || row->columns[size - 2] < row->columns[size - 1];
  }
  // Nearly all files are in ascending order, where no index can be there twice.
  if (!ascending) TANDEM_RETURN_IF_ERROR(CheckDistinct(limits, row->columns));
  return true;
}

}  // namespace tandem
