#include "client/ctl/needed_indices.h"

#include <filesystem>
#include <memory>
#include <string>

#include "base/cache_folder.h"
#include "client/ctl/progress_bar.h"
#include "io/record/named_access.h"
#include "io/record/record_index.h"

namespace penstock::ctl {
namespace {

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

}  // namespace

void BuildNeededIndices(const v1::ValidatePipelineResponse& validated) {
  uint64_t bytes = 0;
  for (const v1::IndexedFile& needed : validated.index_file()) bytes += SizeOf(needed.path());
  ProgressBar progress(bytes);
  uint64_t bytes_before = 0;
  FolderIndexStore store(LocalFileSystem(), CacheFolder("index"));
  for (const v1::IndexedFile& needed : validated.index_file()) {
    // Of the others the daemon makes their indices.
    const RecordAccess* const access = AccessNamed(needed.format());
    if (access == nullptr) continue;
    IndexOptions options;
    options.on_damage = needed.skip_damage() ? OnDamage::kSkipRecord : OnDamage::kFail;
    options.progress = [&](uint64_t done) {
      progress.Show(bytes_before + done, "indexing " + needed.path());
    };
    if (auto file = LocalFileSystem().Open(needed.path()); file.ok())
      LoadOrBuildIndex(*file, *access, store, options).status().IgnoreError();
    bytes_before += SizeOf(needed.path());
  }
  progress.Clear();
}

}  // namespace penstock::ctl
