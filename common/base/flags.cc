#include "common/base/flags.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/one_line.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"

namespace tandem {
namespace {

std::string EnvironmentName(absl::string_view flag) {
  return absl::StrCat("TANDEM_", absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

absl::Status ParseInt(absl::string_view text, int* value) {
  // SimpleAtoi also takes signs and spaces, which are more likely a slip here.
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (digits && absl::SimpleAtoi(text, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected a whole number from 0 to ", std::numeric_limits<int>::max()));
}

absl::Status ParseBool(absl::string_view text, bool* value) {
  if (text != "true" && text != "false" && text != "1" && text != "0") {
    return absl::InvalidArgumentError("expected true or false");
  }
  *value = text == "true" || text == "1";
  return absl::OkStatus();
}

}  // namespace

void FlagSet::Add(std::string name, std::string* value, std::string help) {
  Flag flag{std::move(name), std::move(help), *value};
  flag.assign = [value](absl::string_view text) {
    *value = std::string(text);
    return absl::OkStatus();
  };
  flags_.push_back(std::move(flag));
}

void FlagSet::Add(std::string name, int* value, std::string help) {
  Flag flag{std::move(name), std::move(help), absl::StrCat(*value)};
  flag.assign = [value](absl::string_view text) { return ParseInt(text, value); };
  flags_.push_back(std::move(flag));
}

void FlagSet::Add(std::string name, bool* value, std::string help) {
  Flag flag{std::move(name), std::move(help), *value ? "true" : "false"};
  flag.is_bool = true;
  flag.assign = [value](absl::string_view text) { return ParseBool(text, value); };
  flags_.push_back(std::move(flag));
}

void FlagSet::Add(std::string name, std::vector<std::string>* value, std::string help) {
  Flag flag{std::move(name), std::move(help), absl::StrJoin(*value, ",")};
  flag.repeated = true;
  // The first value takes the place of the default, the others join it.
  flag.assign = [value, first = true](absl::string_view text) mutable {
    if (first) value->clear();
    first = false;
    value->emplace_back(text);
    return absl::OkStatus();
  };
  flags_.push_back(std::move(flag));
}

absl::Status FlagSet::Parse(int argc, char** argv) {
  const absl::Status status = ParseAll(argc, argv);
  if (status.ok()) return status;
  return absl::Status(status.code(), OneLine(std::string(status.message())));
}

absl::Status FlagSet::ParseAll(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    TANDEM_RETURN_IF_ERROR(ParseArgument(argc, argv, &i));
    if (help_requested_) return absl::OkStatus();
  }
  for (Flag& flag : flags_) {
    if (!flag.set) TANDEM_RETURN_IF_ERROR(ReadEnvironment(&flag));
  }
  return absl::OkStatus();
}

absl::Status FlagSet::ParseArgument(int argc, char** argv, int* i) {
  const absl::string_view argument = argv[*i];
  if (argument == "--help" || argument == "-h") {
    help_requested_ = true;
    return absl::OkStatus();
  }
  if (argument.size() < 3 || argument.substr(0, 2) != "--") {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument \"", argument, "\"; flags begin with --"));
  }
  const size_t equals = argument.find('=');
  const absl::string_view name = argument.substr(0, equals).substr(2);
  Flag* const flag = Find(name);
  if (flag == nullptr) return UnknownFlag(name);
  if (equals != absl::string_view::npos) {
    return Assign(flag, argument, argument.substr(equals + 1));
  }
  if (flag->is_bool) return Assign(flag, argument, "true");
  if (*i + 1 >= argc || absl::string_view(argv[*i + 1]).substr(0, 2) == "--") {
    return absl::InvalidArgumentError(absl::StrCat(argument, ": expected a value"));
  }
  ++*i;
  return Assign(flag, absl::StrCat(argument, "=", argv[*i]), argv[*i]);
}

absl::Status FlagSet::ReadEnvironment(Flag* flag) {
  const std::string variable = EnvironmentName(flag->name);
  const char* const text = std::getenv(variable.c_str());
  if (text == nullptr || *text == '\0') return absl::OkStatus();
  const std::string source = absl::StrCat(variable, "=", text);
  if (!flag->repeated) return Assign(flag, source, text);
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    TANDEM_RETURN_IF_ERROR(Assign(flag, source, line));
  }
  return absl::OkStatus();
}

FlagSet::Flag* FlagSet::Find(absl::string_view name) {
  for (Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

absl::Status FlagSet::UnknownFlag(absl::string_view name) const {
  std::vector<std::string> names = {"help"};
  for (const Flag& flag : flags_) names.push_back(flag.name);
  const std::string nearest = Nearest(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag --", name, "; ",
      nearest.empty() ? "--help lists all" : absl::StrCat("did you mean --", nearest, "?")));
}

absl::Status FlagSet::Assign(Flag* flag, absl::string_view source, absl::string_view text) {
  flag->set = true;
  const absl::Status status = flag->assign(text);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", status.message()));
}

std::string FlagSet::Help() const {
  std::string help = absl::StrCat(usage_, "\n\nFlags, with the variables that set them too:\n");
  for (const Flag& flag : flags_) {
    absl::StrAppend(&help, "  --", flag.name, flag.is_bool ? "" : "=VALUE", "  (",
                    EnvironmentName(flag.name), ")\n      ", flag.help);
    if (flag.repeated) absl::StrAppend(&help, " May be given several times.");
    const bool none = flag.default_text.empty();
    absl::StrAppend(&help, none ? " No default." : " Default: ", flag.default_text, "\n");
  }
  absl::StrAppend(&help, "  --help\n      Prints this.\n");
  return help;
}

}  // namespace tandem
