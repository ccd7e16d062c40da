// Names of fields in the errors about a job.
#ifndef TANDEM_COORDINATOR_JOB_FIELDS_H_
#define TANDEM_COORDINATOR_JOB_FIELDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace tandem {

// The names of the message's fields, or of one oneof's, in the order of job.proto.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);
std::vector<std::string> FieldNames(const google::protobuf::OneofDescriptor& choice);

// `Training has no field "replica"; did you mean "replicas"?`
std::string NoSuchField(const google::protobuf::Descriptor& type, absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOB_FIELDS_H_
