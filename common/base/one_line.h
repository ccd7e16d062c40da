// Keeps text that came from outside on one line of a log or an error.
#ifndef TANDEM_COMMON_BASE_ONE_LINE_H_
#define TANDEM_COMMON_BASE_ONE_LINE_H_

#include <string>
#include <utility>

#include "absl/strings/ascii.h"

namespace tandem {

// `text` with every control character (newlines among them) turned into a space.
inline std::string OneLine(std::string text) {
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return text;
}

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_ONE_LINE_H_
