#include "client/ctl/shards.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/named_output.h"

namespace penstock::ctl {
namespace {

// Each holds up to 8 MiB that have not been sent, and a few threads.
constexpr int kFarShardsMax = 64;

}  // namespace

absl::StatusOr<ShardSet> ShardSet::Create(const std::string& directory, const std::string& stem,
                                          int num_shards) {
  const absl::StatusOr<NamedOutput> output = NamedOutput::For(directory);
  if (!output.ok()) return output.status();
  if (!output->is_far()) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot make the folder ", directory, ": ", error.message()));
    }
  } else if (num_shards > kFarShardsMax) {
    return absl::InvalidArgumentError(absl::StrCat("expected at most ", kFarShardsMax,
                                                   " shards at an address, found ", num_shards,
                                                   " (", directory, ")"));
  }
  const std::string ending = absl::StrFormat("-of-%05d.tfrecord", num_shards);
  const absl::StatusOr<std::vector<std::string>> names = output->NamesIn(directory);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, stem + "-") && absl::EndsWith(name, ".tfrecord") &&
        !absl::EndsWith(name, ending)) {
      return absl::FailedPreconditionError(
          absl::StrCat(directory, " already holds shards in another number than ", num_shards,
                       ": remove them or name another folder (", name, ")"));
    }
  }
  ShardSet set;
  for (int shard = 0; shard < num_shards; ++shard) {
    auto writer =
        output->Create(absl::StrCat(directory, "/", stem, absl::StrFormat("-%05d", shard), ending));
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
