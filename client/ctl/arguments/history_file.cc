#include "client/ctl/arguments/history_file.h"

#include <google/protobuf/text_format.h>

#include <cerrno>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/arguments/first_error.h"

namespace penstock::ctl {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

}  // namespace

absl::StatusOr<v1::History> ReadHistoryFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the history ", path));
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an empty file is no history, which has at least a comment: ", path));
  }
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a history longer than limit: ", path, ", ", kMaxBytes, " bytes"));
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  v1::History history;
  if (parser.ParseFromString(text, &history)) return history;
  return absl::InvalidArgumentError(absl::StrCat(path, ":", error.text));
}

}  // namespace penstock::ctl
