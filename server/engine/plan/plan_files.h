// The files of a plan: which there are, and which of them each source reads.
//
// Threads:  one thread, while a plan is made; then constant.
// Owns:     the manifest, which stays where it is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/file.h"
#include "server/engine/order/dataset.h"
#include "server/engine/read/file_table.h"

namespace penstock {

class PlanFiles {
 public:
  explicit PlanFiles(FileSystem& system) : system_(&system) {}

  FileSystem& system() const { return *system_; }
  const Manifest& manifest() const { return *manifest_; }
  const std::vector<FileRange>& sources() const { return sources_; }
  // The stage of each of the sources.
  const std::vector<int>& source_stages() const { return source_stages_; }
  // Of which nothing can be read without their index.
  const std::vector<IndexedFiles>& needed_indices() const { return needed_indices_; }

  // Whether the source whose first file this is reads any.
  bool IsRead(uint32_t file) const {
    return file < manifest_->size() && !(*manifest_)[file].path.empty();
  }
  // Sources make their files known in the order of the text, so that those of one list of stages
  // lie side by side.
  Manifest From(uint32_t first) const { return {manifest_->begin() + first, manifest_->end()}; }

  // Those of one more source, of that stage.
  FileRange Add(Manifest files, int stage);
  // They hold records, found by their offsets; of that format where an index finds them, else null.
  void SetRecordFiles(FileRange files, std::shared_ptr<const RecordFormat> indexed);
  void NeedIndex(IndexedFiles indexed);

 private:
  FileSystem* system_;
  std::unique_ptr<Manifest> manifest_ = std::make_unique<Manifest>();
  std::vector<FileRange> sources_;
  std::vector<int> source_stages_;
  std::vector<IndexedFiles> needed_indices_;
};

}  // namespace penstock
