// The bytes that a block of rows needs of files on other machines: asked for together, and waited
// for by nobody.
//
//     records        that lie in no cell (long ones, those of a global shuffle): each its own
//                    bytes; those that lie near each other together
//     whole files    of sources whose elements are files
//
// Threads:  one at a time: a worker, or, between Begin() and Ended(), who fetches.
// Owns:     the files that bytes were asked of, until Reset(): so they stay until they have been
//           read.
// Cost:     for a block without such records a look at each reference.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/far_file.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/record.h"
#include "server/engine/tasks/away_tasks.h"

namespace penstock {

class FarRecords {
 public:
  // Whether any file of the table is on another machine.
  static bool AnyIn(const FileTable& files);

  // Asks for the bytes of records that will be worked on later, as far as there is memory; nobody
  // waits for them. Returns how many there are, here or not; `open` gets the files, which keep
  // them.
  static uint64_t Announce(absl::Span<const RecordRef> records, FileTable& files,
                           std::vector<std::shared_ptr<RandomAccessFile>>* open);

  // False: all is here. Else `task` has left, and nothing here is the caller's until it is back.
  // What cannot be had is told of when it is read. `stage`: whose time it takes; -1: nobody's.
  bool Begin(absl::Span<const RecordRef> records, FileTable& files, AwayTasks& away, AwayTask* task,
             int stage);
  // Where the task comes back: whether it had left here.
  bool Ended();

  void Reset() { open_.clear(); }

 private:
  std::vector<std::shared_ptr<RandomAccessFile>> open_;
  bool is_away_ = false;
};

}  // namespace penstock
