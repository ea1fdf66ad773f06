#include "client/ctl/words/json_line.h"

#include <google/protobuf/util/json_util.h>

#include <cstdio>

namespace penstock::ctl {

absl::StatusOr<std::string> JsonLine(const google::protobuf::Message& message, Zeros zeros) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = zeros == Zeros::kShown;
  std::string line;
  if (!google::protobuf::util::MessageToJsonString(message, &line, options).ok())
    return absl::InternalError("cannot write JSON");
  return line + "\n";
}

absl::Status PrintJson(const google::protobuf::Message& message) {
  const auto line = JsonLine(message, Zeros::kShown);
  if (!line.ok()) return line.status();
  std::fputs(line->c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace penstock::ctl
