// An Arrow IPC file or stream: its schema, and the record batches and dictionaries in it, found by
// their metadata alone.
//
//   stream    message … message, end
//   file      "ARROW1" 0 0, stream, footer, i32 bytes of the footer, "ARROW1"
//   message   0xffffffff, i32 bytes of the metadata with padding (before Arrow 0.15 without the
//             first word), metadata, body
//   end       0xffffffff 0, or 0, or the end of the file
//
// Source: "Serialization and Interprocess Communication" of the Arrow Columnar Format, and
// format/{Message,File}.fbs of Apache Arrow.
//
// Everything that the metadata says of the file is compared with its size, and all of a batch's
// buffers lie in its body. What is in them is not looked at.
//
// Threads:  one thread.
// Owns:     a share of the file.
// Limits:   metadata of kMaxArrowMetadataBytes a message; batches of kMaxArrowBuffers buffers.
// Cost:     one read for each message, of its metadata only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/arrow/arrow_schema.h"
#include "io/file/damage.h"

namespace penstock {

inline constexpr uint64_t kMaxArrowMetadataBytes = uint64_t{64} << 20;
inline constexpr uint32_t kMaxArrowBuffers = uint32_t{1} << 18;

enum class ArrowCodec : uint8_t { kNone, kLz4Frame, kZstd };

// Bytes of the file.
struct ArrowExtent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// What the metadata says of one record batch, or of one part of a dictionary.
struct ArrowBatch {
  uint64_t offset = 0;  // of its message
  uint64_t rows = 0;
  ArrowCodec codec = ArrowCodec::kNone;
  // Of each field of the schema, parents before their children.
  struct Node {
    uint64_t length = 0;
    uint64_t nulls = 0;
  };
  std::vector<Node> nodes;
  std::vector<ArrowExtent> buffers;
  // The buffers that each view type has beyond its first two.
  std::vector<uint64_t> further_buffers;

  // Of a dictionary: which one, and whether it goes on with what was there.
  std::optional<int64_t> dictionary;
  bool is_delta = false;
};

class ArrowFile {
 public:
  // DataLoss with its address for what is neither; InvalidArgument for what cannot be read. With a
  // policy that skips, a file that was cut before its footer is read as a stream, whose end it
  // should have: without it damage of no bytes is told behind the last message.
  static absl::StatusOr<std::unique_ptr<ArrowFile>> Open(std::shared_ptr<RandomAccessFile> file,
                                                         OnDamage on_damage);

  const ArrowSchema& schema() const { return schema_; }
  bool has_footer() const { return footer_.has_value(); }

  // Calls `take` with each batch: of a file with a footer first with its dictionaries, of a stream
  // as they come. `on_damage` of Open() says what becomes of batches that are not sound, or for
  // which `take` returns DataLoss; `*damage` is what was left out.
  using Take = absl::FunctionRef<absl::Status(const ArrowBatch&)>;
  absl::Status ForEachBatch(Take take, std::vector<Damage>* damage);

 private:
  struct Message;
  struct Block {
    uint64_t offset = 0;
    bool is_dictionary = false;
  };

  ArrowFile(std::shared_ptr<RandomAccessFile> file, OnDamage on_damage)
      : file_(std::move(file)), on_damage_(on_damage) {}

  absl::Status ReadBeginning();
  absl::Status ReadFooter();
  // False where the stream ends at `offset`.
  absl::StatusOr<bool> ReadMessage(uint64_t offset, uint64_t end, Message* message) const;
  absl::Status ReadBatch(const Message& message, ArrowBatch* batch) const;
  absl::Status TakeBlocks(Take take, std::vector<Damage>* damage);
  absl::Status TakeStream(Take take, std::vector<Damage>* damage);
  absl::Status WithAddress(const absl::Status& status, uint64_t offset) const;

  const std::shared_ptr<RandomAccessFile> file_;
  const OnDamage on_damage_;
  ArrowSchema schema_;
  uint64_t stream_begin_ = 0;                 // behind the schema's message
  uint64_t messages_end_ = 0;                 // where the footer begins, or the end of the file
  std::optional<std::vector<Block>> footer_;  // of a file: dictionaries first
  bool has_lost_footer_ = false;              // of a file that is read as a stream
};

}  // namespace penstock
