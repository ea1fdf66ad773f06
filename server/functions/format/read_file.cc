#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/file_error.h"
#include "base/pending_call.h"
#include "base/shown_url.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/scalar_type.h"

namespace penstock::expr {
namespace {

// As long as a record may be.
constexpr uint64_t kFileBytesMax = uint64_t{256} << 20;

class ReadFile final : public RowKernel {
 public:
  explicit ReadFile(FileSystem& files) : files_(files) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const std::string path(reinterpret_cast<const char*>(arguments[0].data), arguments[0].bytes);
    if (path.empty())
      return absl::InvalidArgumentError("expected the path of a file, found the empty string");
    // The system would take what stands before it for the path.
    if (const size_t zero = path.find('\0'); zero != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected the path of a file, found a zero byte at ", zero, " of ", path.size()));
    }
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files_.Open(path);
    if (!file.ok()) return file.status();
    const uint64_t size = (*file)->size();
    if (size > kFileBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("file longer than a record may be: ", size,
                                                     " > ", kFileBytesMax, " bytes (",
                                                     ShownUrl(path), ")"));
    }
    uint8_t* const to = out.Reserve(size);
    // Shown as what it waits for.
    std::optional<PendingCall> call;
    if (IsAddress(path)) call.emplace("fetching", path);
    const absl::StatusOr<size_t> read = (*file)->ReadAt(0, absl::MakeSpan(to, size));
    if (!read.ok()) return read.status();
    if (*read < size) {
      return absl::FailedPreconditionError(
          absl::StrCat("the file became shorter while it was read: ", size, " bytes, then ", *read,
                       " (", ShownUrl(path), ")"));
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  FileSystem& files_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments, FileSystem& files) {
  if (absl::Status status = ReadStrings(arguments[0], "filename"); !status.ok()) return status;
  BoundRowFunction bound;
  bound.type = ScalarType(DType::kString);
  bound.kernel = std::make_shared<ReadFile>(files);
  bound.tensor_arguments = {0};
  return ForEachString(arguments[0].type.shape, std::move(bound));
}

const RowFunctionRegistration kReadFile({
    .name = "read_file",
    .signature = "read_file(filename)",
    .doc = "The bytes of the file that a string names, as tf.io.read_file gives them.\n"
           "\n"
           "filename: a string, or a tensor of strings. A relative path counts from the folder in "
           "which the daemon was started.\n"
           "\n"
           "Strings, of the shape of filename. A file that is missing, is none of the daemon's "
           "data_roots or no regular one, or has\n"
           "more than 256 MiB is an error of its record. Files are opened and read when their "
           "record is computed, each time anew: no\n"
           "cursor and no cache knows what was in them (docs/determinism.md). Where the files are "
           "known beforehand the source\n"
           "`files` reads them ahead. A file at an address (s3://, gs://, http://) takes two "
           "requests or more, and a worker waits\n"
           "for them: with `files` none waits.",
    .bind = nullptr,
    .bind_files = Bind,
});

}  // namespace
}  // namespace penstock::expr
