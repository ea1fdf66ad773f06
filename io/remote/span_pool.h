// The memory of all bytes that are near: spans of objects, which come, are read, and go again.
//
//     Span        consecutive bytes of one object: coming, here, or failed
//     SpanPool    what all of them together may take, and which go first: those that were read to
//                 their end, the longest ago first, then those that were looked at least lately.
//                 One that somebody has asked for stays until it has been read.
//
// Who reads an object from front to back does not come back: of what was read so, only the last few
// blocks stay, though there is room. Their memory is warm, and the next blocks come into it.
//
// Threads:  a SpanPool's mutex guards all spans; bytes that are here are constant and are copied
//           without it.
// Owns:     the memory. As much as 16 whole blocks take is kept besides and used again, whatever
//           its sizes from a mebibyte on: new pages are cleared by the thread that fetches, which
//           takes longer than to fill them.
// Limits:   bytes_max, but for spans that somebody waits for: those are had at any time, so that
//           nobody waits for memory that only he would give back; and for what is lent, a
//           sixteenth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"

namespace penstock {

class RemoteBytes;

struct Span {
  enum class State : uint8_t { kComing, kHere, kFailed };

  RemoteBytes* owner = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::shared_ptr<uint8_t> memory;
  State state = State::kComing;
  uint64_t reached = 0;  // of one that comes: so many of its bytes are here
  absl::Status error;
  uint64_t number = 0;  // among those that its owner has had
  int pins = 0;         // of who has asked for it
  struct Waiting {
    uint64_t until;  // so many of its bytes are here
    std::function<void(const absl::Status&)> tell;
  };
  std::vector<Waiting> waiting;
  std::list<Span*>* queue = nullptr;  // of the pool: where it waits to go; null: it may not
  std::list<Span*>::iterator place;   // there
  bool is_in_order = false;           // it was fetched for who reads from front to back
  bool was_passed = false;

  uint64_t end() const { return offset + bytes; }
  // Whether its bytes in front of `end_of_part`, a place in the object, are here.
  bool Has(uint64_t end_of_part) const {
    return state == State::kHere ||
           (state == State::kComing && std::min(end_of_part, end()) <= offset + reached);
  }
};

class SpanPool {
 public:
  static constexpr uint64_t kBlockBytes = uint64_t{8} << 20;
  static constexpr uint64_t kFirstBytes = uint64_t{256} << 10;
  // Memory of spans below that is not lent.
  static constexpr uint64_t kLentLeast = uint64_t{1} << 20;

  explicit SpanPool(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  std::mutex& mutex() { return mutex_; }

  // All with the mutex held.

  // Memory for a span, taken from others where it must be. Null where it is not `wanted` and there
  // is none.
  std::shared_ptr<uint8_t> Take(uint64_t bytes, bool is_wanted);
  // It is here, and may go.
  void Add(Span* span);
  // It was looked at; `passed`: to its end.
  void Touch(Span* span, bool passed);
  void Remove(Span* span);

  // Of the objects that are read from front to back at present.
  void Reads(int more) { readers_ += more; }
  // What one span is long, so that each of these objects can have a few.
  uint64_t block_bytes() const;
  // How far each of them may read ahead, where so many requests at a time bring more than fewer
  // would: as much as these ask for and a block for each reader, so that the one that is read is
  // none of them; of half of the memory at most.
  uint64_t ahead_bytes(int at_once) const;
  // How far one reads ahead that has just been begun: little where nothing is known, so that there
  // is something to begin with soon; half as far as the others came, once some were read on.
  uint64_t first_window(int at_once) const;
  uint64_t farthest_window() const { return farthest_window_; }
  void ReadsAhead(uint64_t window) { farthest_window_ = std::max(farthest_window_, window); }

  uint64_t bytes() const { return bytes_; }

  // Whether memory may be lent to who may have it for longer than its span is here: as long as what
  // lives so is no more than a sixteenth of all.
  bool MayLend() const;

 private:
  bool MakeRoom(uint64_t bytes, bool is_wanted);
  void TakeOut(Span* span);
  // Those of who reads from front to back, but for the last few.
  void ForgetPassed();

  const uint64_t bytes_max_;
  std::mutex mutex_;
  uint64_t bytes_ = 0;  // of spans
  int readers_ = 0;
  uint64_t farthest_window_ = 0;
  // Those that may go, the first first: read from front to back, read, looked at.
  std::list<Span*> passed_in_order_, passed_, looked_;
  uint64_t passed_in_order_bytes_ = 0;
  struct Blocks;
  std::shared_ptr<Blocks> blocks_ = MakeBlocks();
  static std::shared_ptr<Blocks> MakeBlocks();
};

}  // namespace penstock
