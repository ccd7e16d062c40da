#include "coordinator/job_scan.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "google/protobuf/descriptor.h"

namespace tandem {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

// Bytes of the UTF-8 character that `text` begins with, or 0 when it begins with none.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  // Two to four bytes by the first one: the smallest code point of each length is checked below,
  // since a longer form than needed is not UTF-8.
  const size_t size = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < size) return 0;
  uint32_t code = byte(0) & (0xFF >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[size] || code > 0x10FFFF || surrogate ? 0 : size;
}

// What is wrong with `text`, or "".
std::string StringFault(absl::string_view text) {
  if (text.size() > kMaxStringBytes) {
    return absl::StrCat("has ", text.size(), " bytes; expected at most ", kMaxStringBytes);
  }
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return "is not UTF-8";
    if (absl::ascii_iscntrl(static_cast<unsigned char>(text[0]))) {
      return "has a control character in it";
    }
    text.remove_prefix(bytes);
  }
  return "";
}

std::string FloatFault(float value) {
  if (std::isfinite(value)) return "";
  return absl::StrCat("is ",
                      std::isnan(value) ? "nan"
                      : value > 0       ? "inf"
                                        : "-inf",
                      "; expected a finite number");
}

absl::Status Scan(const std::string& path, const Message& message);

// `index` is -1 for a field that is not repeated.
absl::Status ScanValue(const std::string& path, const Message& message,
                       const FieldDescriptor* field, int index) {
  const Reflection& access = *message.GetReflection();
  const bool single = index < 0;
  std::string fault;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Scan(path + ".", single ? access.GetMessage(message, field)
                                     : access.GetRepeatedMessage(message, field, index));
    case FieldDescriptor::CPPTYPE_FLOAT:
      fault = FloatFault(single ? access.GetFloat(message, field)
                                : access.GetRepeatedFloat(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      fault = StringFault(single ? access.GetString(message, field)
                                 : access.GetRepeatedString(message, field, index));
      break;
    default:  // Whole numbers and booleans are what they are.
      break;
  }
  return fault.empty() ? absl::OkStatus()
                       : absl::InvalidArgumentError(absl::StrCat(path, ": ", fault));
}

// `path` leads to `message`, and ends in a dot unless it is empty.
absl::Status Scan(const std::string& path, const Message& message) {
  const Reflection& access = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  access.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = absl::StrCat(path, field->name());
    if (!field->is_repeated()) {
      TANDEM_RETURN_IF_ERROR(ScanValue(name, message, field, -1));
      continue;
    }
    const int size = access.FieldSize(message, field);
    if (size > kMaxListElements) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": has ", size, " elements; expected at most ", kMaxListElements));
    }
    for (int i = 0; i < size; ++i) {
      TANDEM_RETURN_IF_ERROR(ScanValue(absl::StrCat(name, "[", i, "]"), message, field, i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ScanMessage(const Message& message) { return Scan("", message); }

}  // namespace tandem
