// The files from which the elements of a cache are dealt: one and, where it ran out of room and
// went on later, those that go on behind it.
//
// Each element depends on its number and on the cache's key alone, so that whoever wrote a file and
// when is no matter.
//
// Threads:  one at a time (the front's lock).
// Owns:     the files' maps, also of those that were taken away: elements of them may be on their
//           way.
// Limits:   kMaxParts files.
// Cost:     each element's checksum is checked once, by errands ahead of need, unless the file has
//           just been written by this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/keep/file_cache.h"
#include "server/engine/keep/kept_errands.h"
#include "server/engine/order/order_op.h"
#include "server/engine/read/element_cells.h"

namespace penstock {

class KeptParts {
 public:
  static constexpr size_t kMaxParts = 256;

  KeptParts(FrontContext& context, std::shared_ptr<const FileCache> cache,
            const ElementCells& cells, int stage)
      : context_(context), cache_(std::move(cache)), cells_(cells), stage_(stage) {}

  // How many further files it would take.
  size_t parts_left() const { return whole() ? 0 : kMaxParts - parts_.size(); }
  // Takes what was found, if it goes on behind what is there; whether there was one.
  bool Take(FoundParts found);
  // Why a file that was there was taken away, once; "" where none was.
  std::string TakeNotice() { return std::exchange(notice_, ""); }
  // Takes one that this process has written, if it goes on behind what is there.
  void Take(std::shared_ptr<const ElementFile> file);

  // An element and its bytes, which stay until this object goes. kGone: they are damaged, and there
  // no more, nor is what goes on behind their file. kWaits: they are being checked. REQUIRES:
  // ordinal < size().
  enum class Found : uint8_t { kSound, kGone, kWaits };
  Found Find(uint64_t ordinal, ElementFile::Element* element, const uint8_t** data);

  uint64_t size() const { return size_; }    // elements
  uint64_t bytes() const { return bytes_; }  // of the files
  // Whether all elements of the dataset are there.
  bool whole() const { return !parts_.empty() && parts_.back().file->whole(); }
  bool full() const { return parts_.size() == kMaxParts; }

 private:
  struct Part {
    std::shared_ptr<const ElementFile> file;
    bool trusted = false;           // this process has written it
    std::vector<bool> verified;     // else, by its elements
    uint64_t damaged = UINT64_MAX;  // the element that was found to be
  };
  // Elements are asked for in their order, but for the beginning of a pass.
  Part& PartOf(uint64_t ordinal);
  // Whether an element has not been checked.
  bool IsUnknown(uint64_t ordinal);
  // Has elements from this one on checked, and then those behind them, while these are dealt. False
  // while that is under way.
  bool Check(uint64_t ordinal);
  void StartCheck(uint64_t ordinal);
  // False while it is under way.
  bool TakeChecked();
  void Add(std::shared_ptr<const ElementFile> file, bool trusted);
  void RemoveFrom(size_t part);

  FrontContext& context_;
  const std::shared_ptr<const FileCache> cache_;
  const ElementCells& cells_;
  const int stage_;
  std::vector<Part> parts_;
  size_t last_ = 0;  // that an element was taken from
  std::unique_ptr<KeptCheck> checking_;
  uint64_t checked_until_ = 0;  // by the check that was taken last
  uint64_t size_ = 0;
  uint64_t bytes_ = 0;
  std::vector<std::shared_ptr<const ElementFile>> removed_;
  std::string notice_;
};

}  // namespace penstock
