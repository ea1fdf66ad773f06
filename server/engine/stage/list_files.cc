#include "server/engine/stage/list_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/far_file.h"
#include "base/file.h"

namespace penstock {
namespace {

// In the order of the patterns, of which none behind the first that fails counts.
std::vector<absl::StatusOr<std::vector<ListedFile>>> ListAll(
    const google::protobuf::RepeatedPtrField<std::string>& patterns, FileSystem& files) {
  if (auto* const joined = dynamic_cast<JoinedFileSystem*>(&files); joined != nullptr)
    return joined->ListEach({patterns.begin(), patterns.end()});
  std::vector<absl::StatusOr<std::vector<ListedFile>>> listed;
  for (const std::string& pattern : patterns) {
    listed.push_back(files.List(pattern));
    if (!listed.back().ok()) break;
  }
  return listed;
}

}  // namespace

absl::StatusOr<Manifest> ListFiles(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                                   PlanBuilder& plan, FileOrder order) {
  if (patterns.empty())
    return absl::InvalidArgumentError("files: expected at least one path or glob, found none");
  Manifest manifest;
  for (const std::string& pattern : patterns) {
    // The system would take what stands before it for the path.
    if (const size_t zero = pattern.find('\0'); zero != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "files: expected a path or glob, found a zero byte at ", zero, " of ", pattern.size()));
    }
  }
  for (absl::StatusOr<std::vector<ListedFile>>& listed : ListAll(patterns, plan.files())) {
    if (!listed.ok()) return listed.status();
    for (ListedFile& file : *listed) {
      FileEntry entry;
      entry.path = std::move(file.path);
      entry.size_bytes = file.size_bytes;
      entry.version = file.version;
      manifest.push_back(std::move(entry));
    }
  }
  const auto less = [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; };
  if (std::is_sorted(manifest.begin(), manifest.end(), less)) return manifest;
  if (order == FileOrder::kByPath) {
    std::sort(manifest.begin(), manifest.end(), less);
  } else {
    plan.RaiseMeaning({2, "a list of files keeps its order"});
  }
  return manifest;
}

}  // namespace penstock
