#include "coordinator/job_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/one_line.h"
#include "common/base/status_macros.h"
#include "coordinator/job_fields.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace tandem {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;  // A job is a page or two: more is another file.

// protobuf's words for the one mistake that has a better answer.
constexpr absl::string_view kUnknownFieldBegin = "Message type \"";
constexpr absl::string_view kUnknownFieldMiddle = "\" has no field named \"";

// The message type and the field's name of such a complaint; false when it is another one.
bool SplitUnknownField(absl::string_view complaint, std::string* type, std::string* field) {
  if (!absl::ConsumePrefix(&complaint, kUnknownFieldBegin)) return false;
  const size_t middle = complaint.find(kUnknownFieldMiddle);
  if (middle == absl::string_view::npos || !absl::ConsumeSuffix(&complaint, "\".")) return false;
  *type = std::string(complaint.substr(0, middle));
  *field = std::string(complaint.substr(middle + kUnknownFieldMiddle.size()));
  return true;
}

// Keeps the first error, in our words.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  FirstError(absl::string_view file, const std::string& text)
      : file_(file), lines_(absl::StrSplit(text, '\n')) {}

  // `line` and `column` count from 0.
  void AddError(int line, int column, const std::string& message) override {
    if (!error_.empty()) return;
    std::string words(absl::StripSuffix(message, "."));
    if (absl::EndsWith(words, "got: ")) words += "the end of the file";
    std::string type, field;
    if (SplitUnknownField(message, &type, &field)) {
      const auto* pool = v1::JobSpec::descriptor()->file()->pool();
      const auto* descriptor = pool->FindMessageTypeByName(type);
      if (descriptor != nullptr) words = NoSuchField(*descriptor, field);
      FindBackwards(field, &line, &column);
    }
    error_ = OneLine(absl::StrCat(file_, ":", line + 1, ":", column + 1, ": ", words));
  }

  absl::Status status() const { return absl::InvalidArgumentError(error_); }

 private:
  // protobuf complains at the word behind the field's name: goes back to the name itself.
  void FindBackwards(const std::string& field, int* line, int* column) const {
    size_t from = *column;
    for (int l = std::min<int>(*line, lines_.size() - 1); l >= 0; --l) {
      const size_t found = lines_[l].rfind(field, from);
      if (found != absl::string_view::npos) {
        *line = l;
        *column = static_cast<int>(found);
        return;
      }
      from = absl::string_view::npos;
    }
  }

  const absl::string_view file_;
  const std::vector<absl::string_view> lines_;
  std::string error_;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status CannotRead(const std::string& file) {
  const std::string error = absl::StrCat(file, ": cannot be read: ", std::strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(error) : absl::InvalidArgumentError(error);
}

// Errors in the manner of the header's.
absl::StatusOr<std::string> ReadText(const std::string& file) {
  const std::unique_ptr<std::FILE, CloseFile> in(std::fopen(file.c_str(), "rb"));
  if (in == nullptr) return CannotRead(file);
  struct stat status;
  if (fstat(fileno(in.get()), &status) == 0 && S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": is a folder; expected a job file"));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), in.get()));
  if (std::ferror(in.get())) return CannotRead(file);
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": is longer than ", kMaxFileBytes, " bytes; expected a job file"));
  }
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": is empty; expected a JobSpec in text form"));
  }
  return text;
}

}  // namespace

absl::StatusOr<v1::JobSpec> ParseJob(absl::string_view file, const std::string& text) {
  FirstError first_error(file, text);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&first_error);
  v1::JobSpec job;
  if (!parser.ParseFromString(text, &job)) return first_error.status();
  return job;
}

absl::StatusOr<v1::JobSpec> ReadJobFile(const std::string& file,
                                        const std::vector<std::string>& overrides) {
  const absl::StatusOr<std::string> text = ReadText(file);
  if (!text.ok()) {
    return absl::Status(text.status().code(), OneLine(std::string(text.status().message())));
  }
  TANDEM_ASSIGN_OR_RETURN(v1::JobSpec job, ParseJob(file, *text));
  for (const std::string& assignment : overrides) {
    TANDEM_RETURN_IF_ERROR(ApplyOverride(assignment, &job));
  }
  TANDEM_RETURN_IF_ERROR(FinishJob(&job));
  return job;
}

}  // namespace tandem
