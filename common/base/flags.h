// Command-line flags of the executables: `--name=value`, `--name value`, `--flag` for booleans, and
// TANDEM_NAME in the environment where the command line does not set it. A repeated flag is given
// by a vector. Unknown flags, stray words and malformed values are errors that name the flag.
#ifndef TANDEM_COMMON_BASE_FLAGS_H_
#define TANDEM_COMMON_BASE_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Not thread-safe. The pointers given to Add must outlive Parse.
class FlagSet {
 public:
  // `usage`: what stands above the flags in --help, one or more lines.
  explicit FlagSet(std::string usage) : usage_(std::move(usage)) {}

  // `help` says what the flag does, with its unit. The value that *value has now is the default.
  void Add(std::string name, std::string* value, std::string help);
  void Add(std::string name, int* value, std::string help);  // Decimal; `at least 0`.
  void Add(std::string name, bool* value, std::string help);
  void Add(std::string name, std::vector<std::string>* value, std::string help);  // Repeatable.

  // Reads argv[1..argc) and the environment. --help is not an error: see help_requested().
  absl::Status Parse(int argc, char** argv);

  bool help_requested() const { return help_requested_; }
  // Usage, then every flag with its default. Complete: what is not in it does not exist.
  std::string Help() const;

 private:
  struct Flag {
    std::string name, help, default_text;
    bool is_bool = false;
    bool repeated = false;
    bool set = false;
    std::function<absl::Status(absl::string_view)> assign;
  };

  Flag* Find(absl::string_view name);
  absl::Status Assign(Flag* flag, absl::string_view text);

  std::string usage_;
  std::vector<Flag> flags_;
  bool help_requested_ = false;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_FLAGS_H_
