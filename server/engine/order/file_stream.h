// One file of a source that is being read: the records that are at hand, and one read that is on
// its way.
//
// Threads:  one at a time (the front's lock); the reads themselves are done by workers.
// Owns:     its requests and, for what cannot be read anywhere, the stream. It must live until
//           Close() has returned true.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/order/order_op.h"
#include "server/engine/read/read_queue.h"

namespace penstock {

// Where a file's reading begins: at its beginning, or at a record that an index knows.
struct FileStart {
  uint64_t offset = 0;
  uint64_t ordinal = 0;
};

class FileStream {
 public:
  // With at most `first_bytes` at first where it is mapped.
  FileStream(FrontContext& context, const ReadFormat& format, uint32_t file, FileStart start = {},
             uint64_t first_bytes = kChunkBytes);
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  // The next record of the file. kEnd behind the last one, sticky.
  Pulled Next(RecordRef* record) {
    const RecordList& records = at_hand().records;
    if (next_ == records.size()) [[unlikely]]
      return NextOfLaterRead(record);
    *record = records[next_++];
    return Pulled::kSome;
  }
  // The next records that are at hand, as many as there are and at most `count`; valid until the
  // next call. None where there is more to be known before the next one.
  absl::Span<const RecordRef> TakeAtHand(uint64_t count) {
    if (!damage_.empty()) return {};
    const RecordList& records = at_hand().records;
    const RecordRef* const begin = records.data() + next_;
    const size_t taken = std::min<uint64_t>(count, records.size() - next_);
    next_ += taken;
    return {begin, taken};
  }

  // What was passed over in front of the record that Next() gave last, or of the end; the caller
  // empties it.
  std::vector<Damage>& damage() { return damage_; }
  uint32_t file() const { return at_hand().file; }
  // Of a plain file, what lies behind the records at hand; of a compressed one all of it, since its
  // places are those of its plain bytes.
  uint64_t left_bytes() const;
  const absl::Status& status() const { return at_hand().error; }
  // Of a status that is damage: the rest of the file.
  const Damage& lost() const { return at_hand().lost; }

  // Gives back what was read and not taken. False while a read is under way: then call again later.
  bool Close();

 private:
  ReadRequest& at_hand() { return requests_[current_]; }
  const ReadRequest& at_hand() const { return requests_[current_]; }
  ReadRequest& ahead() { return requests_[1 - current_]; }

  // Asks for what follows the records at hand: at most so much where it is mapped.
  void Request(uint64_t max_bytes = kChunkBytes);
  Pulled NextRead();
  Pulled NextOfLaterRead(RecordRef* record);

  FrontContext& context_;
  ReadRequest requests_[2];
  std::unique_ptr<RecordStream> stream_;
  std::vector<Damage> damage_;
  int current_ = 0;  // the request whose records are at hand; the first one is empty
  size_t next_ = 0;  // the first of them that is not taken
  bool requested_ = false;
};

}  // namespace penstock
