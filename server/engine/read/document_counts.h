// The numbers of tokens of all documents of a source, by the index of tokens that each of its files has: what `pack` decides by, in the
// place of the documents.
//
// Threads:  Open() by the front, Load() from any thread; everything else from any thread once Open() has returned true.
// Owns:     the counts, 2 or 4 bytes a record; the record indices are shared.
// Cost:     Open() goes on where it was, and holds its lock for no file; Find() is a look at the next record, or a search among the file's records for one that is none.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/record/token_counts.h"
#include "server/engine/read/file_table.h"
#include "server/engine/tasks/errands.h"

namespace penstock {

class DocumentCounts {
 public:
  // `key`: of the indices of tokens (io/record/token_counts.h), which lie in `system`. `on_damage`: of the record indices.
  DocumentCounts(FileSystem& system, FileRange files, OnDamage on_damage, std::string key)
      : system_(system), files_(files), on_damage_(on_damage), key_(std::move(key)) {}

  // Reads the counts of all files, once. FailedPrecondition, with the remedy, where an index is no longer there.
  absl::Status Load(FileTable& files);

  // Whether everything is there. False while record indices are still coming, and where `*status` says why there are none. REQUIRES:
  // Load().
  bool Open(FileTable& files, Errands* errands, int stage, absl::Status* status);

  const FileRange& files() const { return files_; }

  // Where a search begins: behind the record that was found last.
  struct Hint {
    uint32_t file = UINT32_MAX;
    uint64_t next = 0;
  };
  // Tokens of the record at `offset` of the file, as of the manifest; TokenCounts::kLeftOut for one that makes no document.
  // FailedPrecondition where the file's record index has none there.
  absl::StatusOr<uint32_t> Find(uint32_t file, uint64_t offset, const FileTable& files,
                                Hint* hint) const;

 private:
  // Files whose record indices are asked for at a time.
  static constexpr uint32_t kAskedTogether = 64;

  absl::Status Stale(const std::string& path, const std::string& why) const;

  FileSystem& system_;
  const FileRange files_;
  const OnDamage on_damage_;
  const std::string key_;
  std::mutex loading_;
  bool loaded_ = false;  // under loading_
  std::vector<std::shared_ptr<const TokenCounts>>
      counts_;  // under loading_ until Open() returns true
  std::vector<std::shared_ptr<const RecordIndex>>
      indices_;  // the same: those of the first files, and of all at last
};

// Calls Load() where nobody waits for it.
class LoadingOfCounts final : public SlowErrand {
 public:
  LoadingOfCounts(DocumentCounts& counts, FileTable& files, int stage)
      : SlowErrand(CallKind::kRead, stage), counts_(counts), files_(files) {}

 private:
  absl::Status Do() override { return counts_.Load(files_); }

  DocumentCounts& counts_;
  FileTable& files_;
};

// What is said where counts do not hold.
std::string RemedyOfCounts();

}  // namespace penstock
