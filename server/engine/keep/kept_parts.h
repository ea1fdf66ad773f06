// The files from which the elements of a cache are dealt: one and, where it ran out of room and went on later, those that go on behind it.
//
// Each element depends on its number and on the cache's key alone, so that whoever wrote a file and when is no matter.
//
// Threads:  one at a time (the front's lock).
// Owns:     the files' maps, also of those that were taken away: elements of them may be on their way.
// Limits:   kMaxParts files.
// Cost:     Find() checks an element's checksum once, unless the file has just been written by this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/keep/file_cache.h"
#include "server/engine/read/element_cells.h"

namespace penstock {

class KeptParts {
 public:
  static constexpr size_t kMaxParts = 256;

  KeptParts(const FileCache& cache, const ElementCells& cells) : cache_(cache), cells_(cells) {}

  // Opens the files that are there behind those that it has; whether there was one.
  bool TakeWhatIsThere();
  // Why a file that was there was taken away, once; "" where none was.
  std::string TakeNotice() { return std::exchange(notice_, ""); }
  // Takes one that this process has written, if it goes on behind what is there.
  void Take(std::shared_ptr<const ElementFile> file);

  // An element and its bytes, which stay until this object goes; false where they are damaged: then they are there no more, nor is
  // what goes on behind their file. REQUIRES: ordinal < size().
  bool Find(uint64_t ordinal, ElementFile::Element* element, const uint8_t** data);

  uint64_t size() const { return size_; }    // elements
  uint64_t bytes() const { return bytes_; }  // of the files
  // Whether all elements of the dataset are there.
  bool whole() const { return !parts_.empty() && parts_.back().file->whole(); }
  bool full() const { return parts_.size() == kMaxParts; }

 private:
  struct Part {
    std::shared_ptr<const ElementFile> file;
    bool trusted = false;        // this process has written it
    std::vector<bool> verified;  // else, by its elements
  };
  void Add(std::shared_ptr<const ElementFile> file, bool trusted);
  void RemoveFrom(size_t part);

  const FileCache& cache_;
  const ElementCells& cells_;
  std::vector<Part> parts_;
  size_t last_ = 0;  // that an element was taken from
  uint64_t size_ = 0;
  uint64_t bytes_ = 0;
  std::vector<std::shared_ptr<const ElementFile>> removed_;
  std::string notice_;
};

}  // namespace penstock
