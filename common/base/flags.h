// Command-line flags of the executables: `--name=value`, `--name value`; `--name` and
// `--name=false` for booleans. A flag given twice has the last value, but a vector collects all of
// them. What the command line does not set may come from the environment: TANDEM_STATE_DIR for
// --state_dir (upper case, - becomes _); an empty variable counts as not set, and a vector takes
// one value a line.
//
// Unknown flags, stray words and malformed values are errors of one line that name the flag and,
// for a misspelt one, the flag that was probably meant. A `--name` that needs a value does not take
// a word that begins with `--` for it; `--name=--word` does.
#ifndef TANDEM_COMMON_BASE_FLAGS_H_
#define TANDEM_COMMON_BASE_FLAGS_H_

#include <functional>
#include <string>
#include <utility>
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
  void Add(std::string name, int* value, std::string help);  // Decimal, at least 0.
  void Add(std::string name, bool* value, std::string help);
  void Add(std::string name, std::vector<std::string>* value, std::string help);  // Repeatable.

  // Reads argv[1..argc) and the environment. --help (or -h) is not an error: what follows it is not
  // read, and help_requested() is true. INVALID_ARGUMENT otherwise.
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
  absl::Status ParseAll(int argc, char** argv);
  // Reads argv[*i], and argv[*i + 1] when it is the value.
  absl::Status ParseArgument(int argc, char** argv, int* i);
  absl::Status ReadEnvironment(Flag* flag);
  absl::Status UnknownFlag(absl::string_view name) const;
  // `source`: how the user wrote the flag, for the error.
  absl::Status Assign(Flag* flag, absl::string_view source, absl::string_view text);

  std::string usage_;
  std::vector<Flag> flags_;
  bool help_requested_ = false;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_FLAGS_H_
