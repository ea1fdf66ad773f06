#include "server/engine/plan/plan_files.h"

#include <iterator>
#include <utility>

namespace penstock {

FileRange PlanFiles::Add(Manifest files, int stage) {
  const FileRange range{static_cast<uint32_t>(manifest_->size()),
                        static_cast<uint32_t>(files.size())};
  sources_.push_back(range);
  source_stages_.push_back(stage);
  manifest_->insert(manifest_->end(), std::make_move_iterator(files.begin()),
                    std::make_move_iterator(files.end()));
  return range;
}

void PlanFiles::SetRecordFiles(FileRange files, std::shared_ptr<const RecordFormat> indexed) {
  for (uint32_t i = 0; i < files.count; ++i) {
    FileEntry& entry = (*manifest_)[files.first + i];
    entry.is_one_element = false;
    entry.indexed = indexed;
  }
}

void PlanFiles::NeedIndex(IndexedFiles indexed) { needed_indices_.push_back(std::move(indexed)); }

}  // namespace penstock
