// ApplyOverride: walks a path through protobuf reflection and sets what it ends at.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/one_line.h"
#include "common/base/status_macros.h"
#include "coordinator/job_fields.h"
#include "coordinator/job_file.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace tandem {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

absl::Status Expected(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what));
}

// SimpleAto* skip spaces and take a plus sign; a job's numbers have neither.
bool IsBareNumber(absl::string_view text) {
  return !text.empty() && text[0] != '+' && !absl::ascii_isspace(text.front()) &&
         !absl::ascii_isspace(text.back());
}

template <typename Int>
absl::Status ParseWhole(absl::string_view text, Int* value) {
  if (IsBareNumber(text) && absl::SimpleAtoi(text, value)) return absl::OkStatus();
  return Expected(absl::StrCat("a whole number from 0 to ", std::numeric_limits<Int>::max()));
}

absl::Status ParseValue(absl::string_view text, uint32_t* value) { return ParseWhole(text, value); }
absl::Status ParseValue(absl::string_view text, uint64_t* value) { return ParseWhole(text, value); }

// Takes nan and inf too: FinishJob refuses them in its own words.
absl::Status ParseValue(absl::string_view text, float* value) {
  if (IsBareNumber(text) && absl::SimpleAtof(text, value)) return absl::OkStatus();
  return Expected("a number");
}

absl::Status ParseValue(absl::string_view text, bool* value) {
  if (text != "true" && text != "false") return Expected("true or false");
  *value = text == "true";
  return absl::OkStatus();
}

absl::Status ParseValue(absl::string_view text, std::string* value) {
  *value = std::string(text);
  return absl::OkStatus();
}

// A repeated field gets one more, another one is set.
void Put(const FieldDescriptor* field, uint32_t value, Message* message) {
  const Reflection& access = *message->GetReflection();
  field->is_repeated() ? access.AddUInt32(message, field, value)
                       : access.SetUInt32(message, field, value);
}
void Put(const FieldDescriptor* field, uint64_t value, Message* message) {
  const Reflection& access = *message->GetReflection();
  field->is_repeated() ? access.AddUInt64(message, field, value)
                       : access.SetUInt64(message, field, value);
}
void Put(const FieldDescriptor* field, float value, Message* message) {
  const Reflection& access = *message->GetReflection();
  field->is_repeated() ? access.AddFloat(message, field, value)
                       : access.SetFloat(message, field, value);
}
void Put(const FieldDescriptor* field, bool value, Message* message) {
  const Reflection& access = *message->GetReflection();
  field->is_repeated() ? access.AddBool(message, field, value)
                       : access.SetBool(message, field, value);
}
void Put(const FieldDescriptor* field, std::string value, Message* message) {
  const Reflection& access = *message->GetReflection();
  field->is_repeated() ? access.AddString(message, field, std::move(value))
                       : access.SetString(message, field, std::move(value));
}

template <typename Value>
absl::Status ParseAndPut(absl::string_view text, const FieldDescriptor* field, Message* message) {
  Value value{};
  TANDEM_RETURN_IF_ERROR(ParseValue(text, &value));
  Put(field, std::move(value), message);
  return absl::OkStatus();
}

absl::Status PutScalar(absl::string_view text, const FieldDescriptor* field, Message* message) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return ParseAndPut<uint32_t>(text, field, message);
    case FieldDescriptor::CPPTYPE_UINT64:
      return ParseAndPut<uint64_t>(text, field, message);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return ParseAndPut<float>(text, field, message);
    case FieldDescriptor::CPPTYPE_BOOL:
      return ParseAndPut<bool>(text, field, message);
    case FieldDescriptor::CPPTYPE_STRING:
      return ParseAndPut<std::string>(text, field, message);
    default:  // job.proto has no others; a test sets every field.
      return absl::UnimplementedError(
          absl::StrCat("a field of type ", field->cpp_type_name(), " cannot be set here"));
  }
}

absl::Status PutList(absl::string_view text, const FieldDescriptor* field, Message* message) {
  message->GetReflection()->ClearField(message, field);
  if (text.empty()) return absl::OkStatus();
  for (absl::string_view element : absl::StrSplit(text, ',')) {
    if (element.empty()) return Expected("a comma-separated list without empty elements");
    TANDEM_RETURN_IF_ERROR(PutScalar(element, field, message));
  }
  return absl::OkStatus();
}

// The element of the repeated `field` that `number` names.
absl::StatusOr<Message*> Element(absl::string_view number, const FieldDescriptor* field,
                                 Message* message) {
  const Reflection& access = *message->GetReflection();
  const int size = access.FieldSize(*message, field);
  uint32_t index = 0;
  if (ParseValue(number, &index).ok() && index < static_cast<uint32_t>(size)) {
    return access.MutableRepeatedMessage(message, field, static_cast<int>(index));
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", number, "\" is no element of ",
                                                 field->name(), ", which has ", size,
                                                 size > 0 ? ", numbered from 0" : ""));
}

// Sets what `path` (at least one name) leads to from `message`.
absl::Status Assign(absl::Span<const absl::string_view> path, absl::string_view text,
                    Message* message) {
  const FieldDescriptor* const field =
      message->GetDescriptor()->FindFieldByName(std::string(path[0]));
  if (field == nullptr) {
    return absl::InvalidArgumentError(NoSuchField(*message->GetDescriptor(), path[0]));
  }
  path.remove_prefix(1);
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    if (!path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(field->name(), " has no fields"));
    }
    return field->is_repeated() ? PutList(text, field, message) : PutScalar(text, field, message);
  }
  Message* child = nullptr;
  if (field->is_repeated()) {
    if (path.empty()) return Expected(absl::StrCat("an element's number after ", field->name()));
    TANDEM_ASSIGN_OR_RETURN(child, Element(path[0], field, message));
    path.remove_prefix(1);
  } else {
    child = message->GetReflection()->MutableMessage(message, field);
  }
  if (!path.empty()) return Assign(path, text, child);
  if (text != "{}") {
    return Expected(absl::StrCat("{}, or one of its fields: ",
                                 absl::StrJoin(FieldNames(*child->GetDescriptor()), ", ")));
  }
  child->Clear();
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyOverride(absl::string_view assignment, v1::JobSpec* job) {
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        OneLine(absl::StrCat("--set=", assignment, ": expected path.to.field=value")));
  }
  const std::vector<absl::string_view> path = absl::StrSplit(assignment.substr(0, equals), '.');
  v1::JobSpec changed = *job;
  const absl::Status status = Assign(path, assignment.substr(equals + 1), &changed);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        OneLine(absl::StrCat("--set=", assignment, ": ", status.message())));
  }
  job->Swap(&changed);
  return absl::OkStatus();
}

}  // namespace tandem
