// Reads messages of Protobuf's text format that people wrote, with errors that people can use.
//
// Threads: safe from any thread.
// Limits:  kMaxTextBytes; messages nest at most 64 deep.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace penstock {

inline constexpr size_t kMaxTextBytes = 1 << 20;

// Fills `message` from `text`. InvalidArgument: `FILE:LINE:COLUMN: what is wrong`, lines and
// columns counted from 1, with the nearest field where a name is unknown, or the field whose string
// is not UTF-8. Nothing unknown is skipped.
absl::Status ParseTextProto(absl::string_view text, absl::string_view file_name,
                            google::protobuf::Message* message);

// InvalidArgument for a string that is not UTF-8, with its field: such a message could be written,
// but not read again.
absl::Status CheckText(const google::protobuf::Message& message);
// InvalidArgument for a field that this release does not know, which a newer client may have sent.
absl::Status CheckFields(const google::protobuf::Message& message);

// Where fields stand in a text: for complaints about their values.
class TextPlaces {
 public:
  // `FILE:LINE:COLUMN` of the field at `path`, such as "access_rule[1].rights", or of the nearest
  // message around it; `FILE` where there is none.
  std::string Of(const google::protobuf::Message& message, absl::string_view path) const;

 private:
  friend absl::Status ParseTextProto(absl::string_view, absl::string_view,
                                     google::protobuf::Message*, TextPlaces*);
  std::string file_name_;
  google::protobuf::TextFormat::ParseInfoTree tree_;
};

// The same; `places` receives where each field stands.
absl::Status ParseTextProto(absl::string_view text, absl::string_view file_name,
                            google::protobuf::Message* message, TextPlaces* places);

}  // namespace penstock
