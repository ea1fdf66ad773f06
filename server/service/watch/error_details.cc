#include "server/service/watch/error_details.h"

#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "penstock/v1/error_details.pb.h"

namespace penstock {
namespace {

constexpr char kReason[] = "penstock/reason";
constexpr char kField[] = "penstock/field";
constexpr char kTypes[] = "type.googleapis.com/google.rpc.";
// Of a field's violation: the trailer's bytes are limited, and the message stands in it already.
constexpr size_t kMaxDescriptionBytes = 400;

void Pack(const char* name, const google::protobuf::Message& message, v1::ErrorStatus* to) {
  google::protobuf::Any* detail = to->add_details();
  detail->set_type_url(absl::StrCat(kTypes, name));
  detail->set_value(message.SerializeAsString());
}

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!status.ok()) status.SetPayload(kReason, absl::Cord(reason));
  return status;
}

absl::Status WithField(absl::Status status, absl::string_view field) {
  if (!status.ok()) status.SetPayload(kField, absl::Cord(field));
  return status;
}

std::string ErrorDetails(const absl::Status& status, const std::string& message,
                         const std::string& pipeline) {
  v1::ErrorStatus all;
  all.set_code(status.raw_code());
  all.set_message(message);
  v1::ErrorInfo info;
  const absl::optional<absl::Cord> reason = status.GetPayload(kReason);
  info.set_reason(reason ? std::string(*reason) : absl::StatusCodeToString(status.code()));
  info.set_domain("penstock");
  if (!pipeline.empty()) (*info.mutable_metadata())["pipeline"] = ReadableUtf8(pipeline, 128);
  Pack("ErrorInfo", info, &all);
  if (const absl::optional<absl::Cord> field = status.GetPayload(kField)) {
    v1::BadRequest request;
    v1::BadRequest::FieldViolation* violation = request.add_field_violations();
    violation->set_field(std::string(*field));
    violation->set_description(ReadableUtf8(message, kMaxDescriptionBytes));
    Pack("BadRequest", request, &all);
  }
  return all.SerializeAsString();
}

}  // namespace penstock
