#include "coordinator/job_fields.h"

#include "absl/strings/str_cat.h"
#include "common/base/suggest.h"

namespace tandem {
namespace {

template <typename Owner>
std::vector<std::string> Names(const Owner& owner) {
  std::vector<std::string> names;
  for (int i = 0; i < owner.field_count(); ++i) names.push_back(owner.field(i)->name());
  return names;
}

}  // namespace

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type) {
  return Names(type);
}

std::vector<std::string> FieldNames(const google::protobuf::OneofDescriptor& choice) {
  return Names(choice);
}

std::string NoSuchField(const google::protobuf::Descriptor& type, absl::string_view name) {
  if (type.field_count() == 0) return absl::StrCat(type.name(), " has no fields");
  return absl::StrCat(type.name(), " has no field \"", name, "\"",
                      DidYouMean(name, FieldNames(type)));
}

}  // namespace tandem
