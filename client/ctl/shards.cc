#include "client/ctl/shards.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::ctl {

absl::StatusOr<ShardSet> ShardSet::Create(const std::string& directory, const std::string& stem,
                                          int num_shards) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make the folder ", directory, ": ", error.message()));
  }
  const std::string ending = absl::StrFormat("-of-%05d.tfrecord", num_shards);
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, stem + "-") && absl::EndsWith(name, ".tfrecord") &&
        !absl::EndsWith(name, ending)) {
      return absl::FailedPreconditionError(
          absl::StrCat(directory, " already holds shards in another number than ", num_shards,
                       ": remove them or name another folder (", name, ")"));
    }
  }
  ShardSet set;
  for (int shard = 0; shard < num_shards; ++shard) {
    auto writer = TfrecordWriter::Create(
        absl::StrCat(directory, "/", stem, absl::StrFormat("-%05d", shard), ending));
    if (!writer.ok()) return writer.status();
    set.writers_.push_back(*std::move(writer));
  }
  return set;
}

absl::Status ShardSet::Close() {
  for (auto& writer : writers_) {
    if (absl::Status status = writer->Close(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::ctl
