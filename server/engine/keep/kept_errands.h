// What others than the front do for files of elements that are kept: each errand is given
// what it needs when it begins, and the front takes the result when it is done.
//
//     KeptLook    looks for files that are there
//     KeptCheck   reads some of their elements, and checks them
//     KeptStart   begins a file
//     KeptBlock   writes some of its elements
//     KeptEnd     ends it
//
// Threads:  Begin() and Do() by one thread; the results are the front's once it is done.
// Owns:     what it is given, until it is done; KeptBlock gives its elements back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "io/element/element_file.h"
#include "io/element/element_file_writer.h"
#include "server/engine/keep/file_cache.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"
#include "server/engine/tasks/errands.h"

namespace penstock {

// Files that are there.
struct FoundParts {
  std::vector<std::shared_ptr<const ElementFile>> files;
  std::string notice;  // why one that was there was taken away; "" where none was
};

// Where a file goes on, behind others.
struct KeptBehind {
  uint64_t elements = 0;  // of those
  uint64_t bytes = 0;     // of their files
  size_t parts_left = 0;  // how many files may follow
};

class KeptLook final : public SlowErrand {
 public:
  // `asks_room`: whether room for more is of interest.
  KeptLook(std::shared_ptr<const FileCache> cache, KeptBehind behind, bool asks_room, int stage)
      : SlowErrand(CallKind::kRead, stage),
        cache_(std::move(cache)),
        behind_(behind),
        asks_room_(asks_room) {}

  FoundParts found;
  uint64_t room = UINT64_MAX;  // bytes behind all of them; where nothing is kept, nobody looks

 private:
  absl::Status Do() override;

  const std::shared_ptr<const FileCache> cache_;
  const KeptBehind behind_;
  const bool asks_room_;
};

class KeptCheck final : public SlowErrand {
 public:
  // About so much at once, and never more elements.
  static constexpr uint64_t kBytes = uint64_t{1} << 20;
  static constexpr uint64_t kElements = 4096;

  KeptCheck(std::shared_ptr<const FileCache> cache, const ElementCells& cells,
            std::shared_ptr<const ElementFile> of_file, uint64_t from, int stage)
      : SlowErrand(CallKind::kRead, stage),
        file(std::move(of_file)),
        first(from),
        cache_(std::move(cache)),
        cells_(cells) {}

  const std::shared_ptr<const ElementFile> file;
  const uint64_t first;     // of its elements
  uint64_t num_sound = 0;   // from that one on
  bool is_damaged = false;  // the one behind those

 private:
  absl::Status Do() override;

  const std::shared_ptr<const FileCache> cache_;
  const ElementCells& cells_;
};

class KeptStart final : public SlowErrand {
 public:
  KeptStart(std::shared_ptr<const FileCache> cache, KeptBehind behind, int stage)
      : SlowErrand(CallKind::kWrite, stage), cache_(std::move(cache)), behind_(behind) {}

  // One of the two, unless it has failed: another one's files, which have come meanwhile.
  FoundParts found;
  std::unique_ptr<ElementFileWriter> writer;
  uint64_t room = 0;  // bytes that the file may have

 private:
  absl::Status Do() override;

  const std::shared_ptr<const FileCache> cache_;
  const KeptBehind behind_;
};

// A worker's own work, as it is mostly a copy into the page cache; but where the file is on another
// machine, that of a thread of the errands.
class KeptBlock final : public Errand {
 public:
  KeptBlock(std::shared_ptr<ElementFileWriter> writer, RecordStore& store, int stage)
      : Errand(CallKind::kWrite, stage),
        first(writer->elements()),
        from_(writer->writes_each_byte() ? writer->end() : 0),
        writer_(std::move(writer)),
        store_(store) {}

  // Before it begins: it is also to look how much room there is, as others write there too. The
  // arguments are those of FileCache::Room().
  void AskRoom(std::shared_ptr<const FileCache> cache, uint64_t earlier_bytes, uint64_t own_bytes);
  // Likewise: writing waits for another machine, until `stop` says that nobody wants it any more.
  void WaitOn(Errands* errands, const std::atomic<bool>* stop);
  void Begin(Completion end) override;

  const uint64_t first;
  uint64_t bytes = 0;
  RecordList records;
  std::vector<ElementFile::Element> places;
  std::vector<const uint8_t*> data;
  std::optional<uint64_t> room;

 private:
  absl::Status Write();

  const uint64_t from_;
  std::shared_ptr<ElementFileWriter> writer_;
  RecordStore& store_;
  Errands* errands_ = nullptr;  // null: the worker writes it
  const std::atomic<bool>* stop_ = nullptr;
  std::shared_ptr<const FileCache> cache_;  // null: it is not to look
  uint64_t earlier_bytes_ = 0;
  uint64_t own_bytes_ = 0;
};

// Mostly waited for: until all of the file is durable.
class KeptEnd final : public SlowErrand {
 public:
  // `stop`: set where nobody wants it any more; it outlives the errand.
  KeptEnd(std::shared_ptr<ElementFileWriter> writer, std::shared_ptr<const FileCache> cache,
          uint64_t elements, bool whole, const std::atomic<bool>* stop, int stage)
      : SlowErrand(CallKind::kSync, stage),
        writer_(std::move(writer)),
        cache_(std::move(cache)),
        elements_(elements),
        whole_(whole),
        stop_(stop) {}

  // Where it has ended well: what the file has, and the file, unless that is on another machine.
  bool is_whole = false;
  uint64_t num_elements = 0;
  uint64_t bytes = 0;
  std::shared_ptr<const ElementFile> file;

 private:
  absl::Status Do() override;

  std::shared_ptr<ElementFileWriter> writer_;
  const std::shared_ptr<const FileCache> cache_;  // whose disk the writer uses
  const uint64_t elements_;
  const bool whole_;
  const std::atomic<bool>* const stop_;
};

}  // namespace penstock
