#include "client/ctl/named_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file_error.h"
#include "client/ctl/match_files.h"
#include "io/remote/remote_environment.h"
#include "io/remote/remote_file_system.h"

namespace penstock::ctl {

absl::StatusOr<RemoteOptions> NamedFiles::Options() {
  return RemoteOptionsOf(ProcessEnvironment(), /*has_owner=*/true);
}

absl::Status NamedFiles::AddFar(const std::string& pattern) {
  if (far_ == nullptr) {
    absl::StatusOr<RemoteOptions> options = Options();
    if (!options.ok()) return options.status();
    auto far = std::make_unique<RemoteFileSystem>(LocalFileSystem(), *std::move(options));
    if (absl::Status status = far->status(); !status.ok()) return status;
    far_ = std::move(far);
  }
  absl::StatusOr<std::vector<ListedFile>> listed = far_->List(pattern);
  if (!listed.ok()) return listed.status();
  files_.insert(files_.end(), listed->begin(), listed->end());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<NamedFiles>> NamedFiles::Match(
    const std::vector<std::string>& patterns, std::vector<std::string>* others) {
  auto named = std::make_unique<NamedFiles>();
  std::vector<std::string> near;
  for (const std::string& pattern : patterns) {
    if (!IsAddress(pattern)) {
      near.push_back(pattern);
      continue;
    }
    if (absl::Status status = named->AddFar(pattern); !status.ok()) return status;
  }
  if (!near.empty()) {
    const absl::StatusOr<std::vector<std::string>> paths = MatchFiles(near, others);
    if (!paths.ok()) return paths.status();
    for (const std::string& path : *paths) {
      std::error_code failed;
      const uintmax_t bytes = std::filesystem::file_size(path, failed);
      named->files_.push_back({path, failed ? 0 : bytes, {}});
    }
  }
  const auto less = [](const ListedFile& a, const ListedFile& b) { return a.path < b.path; };
  const auto same = [](const ListedFile& a, const ListedFile& b) { return a.path == b.path; };
  std::sort(named->files_.begin(), named->files_.end(), less);
  named->files_.erase(std::unique(named->files_.begin(), named->files_.end(), same),
                      named->files_.end());
  return named;
}

uint64_t NamedFiles::bytes() const {
  uint64_t bytes = 0;
  for (const ListedFile& file : files_) bytes += file.size_bytes;
  return bytes;
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> NamedFiles::Open(const ListedFile& file) {
  // What was listed at an address is opened without asking again, and held to that state.
  return IsAddress(file.path) ? far_->OpenListed(file) : LocalFileSystem().Open(file.path);
}

}  // namespace penstock::ctl
