#include "client/ctl/arguments/cursor_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/replaced_file.h"

namespace penstock::ctl {
namespace {

// Enough to tell a longer file from a cursor.
constexpr size_t kMostBytes = 4096;

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

}  // namespace

absl::StatusOr<std::string> ReadCursorFile(const std::string& path) {
  const File file(fopen(path.c_str(), "rbe"));
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::string bytes(kMostBytes, 0);
  bytes.resize(fread(bytes.data(), 1, bytes.size(), file.get()));
  if (ferror(file.get())) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " is empty: no cursor"));
  return bytes;
}

absl::Status WriteCursorFile(const std::string& path, std::string_view cursor) {
  const ReplacedFile replaced(path);
  {
    File file(fopen(replaced.partial().c_str(), "wbe"));
    const bool written = file != nullptr &&
                         fwrite(cursor.data(), 1, cursor.size(), file.get()) == cursor.size() &&
                         fclose(file.release()) == 0;
    if (!written)
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", replaced.partial()));
  }
  return replaced.Replace();
}

}  // namespace penstock::ctl
