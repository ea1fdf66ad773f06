#include "io/arrow/arrow_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr char kMagic[] = "ARROW1";
constexpr uint64_t kMagicBytes = 6;
constexpr uint64_t kPaddedMagicBytes = 8;
constexpr uint64_t kTailBytes = 4 + kMagicBytes;  // of a file, behind the footer
constexpr uint32_t kContinuation = 0xffffffff;
// Mostly all of a message's metadata.
constexpr uint64_t kFirstReadBytes = 2048;
constexpr uint32_t kBlockBytes = 24;
constexpr uint32_t kPairBytes = 16;

// The numbers of the fields in their tables, and what they may be.
enum FooterField { kFooterSchema = 1, kFooterDictionaries = 2, kFooterBatches = 3 };
enum MessageField { kVersion = 0, kHeaderKind = 1, kHeader = 2, kBodyLength = 3 };
enum BatchField { kLength = 0, kNodes = 1, kBuffers = 2, kCompression = 3, kFurther = 4 };
enum DictionaryField { kId = 0, kData = 1, kIsDelta = 2 };
enum HeaderKind : uint8_t { kSchemaMessage = 1, kDictionaryMessage = 2, kBatchMessage = 3 };
constexpr int16_t kVersion4 = 3, kVersion5 = 4;

absl::Status CheckVersion(int16_t version) {
  if (version == kVersion4 || version == kVersion5) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("metadata of version ", version + 1,
                                                 "; expected 4 or 5, which Arrow has since 0.8"));
}

absl::Status Malformed(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the metadata of a message is not sound: ", what));
}

// What a file is that begins so, where it is none of Arrow's.
std::string OtherFormat(absl::string_view beginning) {
  if (absl::StartsWith(beginning, "PAR1")) return "a Parquet file";
  if (absl::StartsWith(beginning, "FEA1"))
    return "a Feather file of version 1: write it by version 2, which is Arrow's";
  if (absl::StartsWith(beginning, "\x1f\x8b")) return "a gzip file: unpack it";
  if (absl::StartsWith(beginning, "\x28\xb5\x2f\xfd")) return "a zstd file: unpack it";
  return "something else";
}

}  // namespace

// The metadata of one message, and where its body is.
struct ArrowFile::Message {
  uint64_t offset = 0;
  std::vector<uint8_t> metadata;
  uint64_t body = 0;
  uint64_t body_bytes = 0;
  uint8_t kind = 0;

  uint64_t end() const { return body + body_bytes; }
};

absl::StatusOr<std::unique_ptr<ArrowFile>> ArrowFile::Open(std::shared_ptr<RandomAccessFile> file,
                                                           OnDamage on_damage) {
  std::unique_ptr<ArrowFile> opened(new ArrowFile(std::move(file), on_damage));
  if (absl::Status status = opened->ReadBeginning(); !status.ok()) return status;
  return opened;
}

absl::Status ArrowFile::WithAddress(const absl::Status& status, uint64_t offset) const {
  if (absl::StrContains(status.message(), file_->path())) return status;
  return WithMessage(status,
                     absl::StrCat(status.message(), " (", file_->path(), ", offset ", offset, ")"));
}

absl::Status ArrowFile::ReadBeginning() {
  messages_end_ = file_->size();
  char beginning[kPaddedMagicBytes] = {};
  absl::StatusOr<size_t> read =
      file_->ReadAt(0, {reinterpret_cast<uint8_t*>(beginning), sizeof(beginning)});
  if (!read.ok()) return read.status();
  const bool is_file = *read >= kMagicBytes && std::memcmp(beginning, kMagic, kMagicBytes) == 0;
  if (is_file) {
    const absl::Status status = ReadFooter();
    if (status.ok()) return status;
    if (on_damage_ == OnDamage::kFail || !absl::IsDataLoss(status)) return status;
    messages_end_ = file_->size();
    has_lost_footer_ = true;
  }
  // The schema is the first message.
  const uint64_t begin = is_file ? kPaddedMagicBytes : 0;
  Message message;
  absl::StatusOr<bool> found = ReadMessage(begin, messages_end_, &message);
  absl::Status status = found.status();
  if (status.ok() && (!*found || message.kind != kSchemaMessage))
    status = absl::DataLossError("expected a schema as the first message, found none");
  if (absl::IsDataLoss(status) && !is_file) {
    status =
        WithMessage(status, absl::StrCat("expected an Arrow IPC file or stream, found ",
                                         OtherFormat({beginning, *read}), ": ", status.message()));
  }
  if (status.ok()) {
    FlatBuffer buffer(message.metadata);
    const FlatTable root = buffer.Root();
    absl::StatusOr<ArrowSchema> schema = ReadArrowSchema(buffer, root.Table(kHeader));
    status = schema.status();
    if (status.ok()) {
      schema_ = *std::move(schema);
      schema_.before_version_5 = root.Number<int16_t>(kVersion) < kVersion5;
      stream_begin_ = message.end();
    }
  }
  return status.ok() ? status : WithAddress(status, begin);
}

absl::Status ArrowFile::ReadFooter() {
  const uint64_t size = file_->size();
  const auto no_footer = [&](absl::string_view what) {
    return WithAddress(absl::DataLossError(
                           absl::StrCat("the file has no sound footer, and was perhaps cut: ", what,
                                        "; on_damage \"skip_record\" reads what is whole")),
                       size < kTailBytes ? 0 : size - kTailBytes);
  };
  if (size < kPaddedMagicBytes + kTailBytes) return no_footer("it is too short");
  uint8_t tail[kTailBytes];
  absl::StatusOr<size_t> read = file_->ReadAt(size - kTailBytes, absl::MakeSpan(tail));
  if (!read.ok()) return read.status();
  if (*read < kTailBytes || std::memcmp(tail + 4, kMagic, kMagicBytes) != 0)
    return no_footer("it does not end with ARROW1");
  int32_t bytes = 0;
  std::memcpy(&bytes, tail, sizeof(bytes));
  const uint64_t most = std::min(size - kPaddedMagicBytes - kTailBytes, kMaxArrowMetadataBytes);
  if (bytes <= 0 || static_cast<uint64_t>(bytes) > most)
    return no_footer(absl::StrCat("it would have ", bytes, " bytes"));
  const uint64_t begin = size - kTailBytes - bytes;
  std::vector<uint8_t> footer(bytes);
  read = file_->ReadAt(begin, absl::MakeSpan(footer));
  if (!read.ok()) return read.status();
  if (*read < footer.size()) return no_footer("it cannot be read");
  FlatBuffer buffer(footer);
  const FlatTable root = buffer.Root();
  if (!root.is_there()) return no_footer("it is no sound metadata");
  if (absl::Status status = CheckVersion(root.Number<int16_t>(kVersion)); !status.ok())
    return WithAddress(status, begin);
  absl::StatusOr<ArrowSchema> schema = ReadArrowSchema(buffer, root.Table(kFooterSchema));
  if (!schema.ok()) return WithAddress(schema.status(), begin);
  schema_ = *std::move(schema);
  schema_.before_version_5 = root.Number<int16_t>(kVersion) < kVersion5;
  std::vector<Block> blocks;
  for (const int field : {kFooterDictionaries, kFooterBatches}) {
    const FlatVector found = root.Vector(field, kBlockBytes);
    for (uint32_t i = 0; i < found.size(); ++i)
      blocks.push_back({found.Number<uint64_t>(i), field == kFooterDictionaries});
  }
  if (buffer.malformed()) return no_footer("it is no sound metadata");
  messages_end_ = begin;
  footer_ = std::move(blocks);
  return absl::OkStatus();
}

absl::StatusOr<bool> ArrowFile::ReadMessage(uint64_t offset, uint64_t end, Message* message) const {
  const auto cut = [&](absl::string_view what, uint64_t wanted) {
    return absl::DataLossError(absl::StrCat("the file is cut inside of ", what, ": expected ",
                                            wanted, " bytes from offset ", offset, " on, found ",
                                            end - offset));
  };
  if (offset >= end) {
    if (offset == end) return false;
    return absl::DataLossError(absl::StrCat("a message at offset ", offset, " of ", end, " bytes"));
  }
  uint8_t first[kFirstReadBytes];
  const uint64_t at_hand = std::min(kFirstReadBytes, end - offset);
  absl::StatusOr<size_t> read = file_->ReadAt(offset, absl::MakeSpan(first, at_hand));
  if (!read.ok()) return read.status();
  if (*read < at_hand) {
    return FileShrunkError(absl::StrCat("the file became shorter than its ", file_->size(),
                                        " bytes while it was read (", file_->path(), ", offset ",
                                        offset, ")"));
  }
  uint32_t words[2] = {0, 0};
  if (at_hand < sizeof(uint32_t)) return cut("a message's head", sizeof(words));
  std::memcpy(words, first, std::min<uint64_t>(at_hand, sizeof(words)));
  const bool has_mark = words[0] == kContinuation;
  const uint64_t head_bytes = has_mark ? sizeof(words) : sizeof(uint32_t);
  if (at_hand < head_bytes) return cut("a message's head", head_bytes);
  const uint64_t bytes = has_mark ? words[1] : words[0];
  if (bytes == 0) return false;
  if (bytes > kMaxArrowMetadataBytes) {
    return absl::DataLossError(absl::StrCat("a message with ", bytes,
                                            " bytes of metadata; expected ", "at most ",
                                            kMaxArrowMetadataBytes));
  }
  if (bytes > end - offset - head_bytes) return cut("a message's metadata", head_bytes + bytes);
  message->offset = offset;
  message->metadata.resize(bytes);
  const uint64_t known = std::min(at_hand - head_bytes, bytes);
  std::memcpy(message->metadata.data(), first + head_bytes, known);
  if (known < bytes) {
    read = file_->ReadAt(offset + head_bytes + known,
                         absl::MakeSpan(message->metadata).subspan(known));
    if (!read.ok()) return read.status();
    if (*read < bytes - known) return cut("a message's metadata", head_bytes + bytes);
  }
  FlatBuffer buffer(message->metadata);
  const FlatTable root = buffer.Root();
  message->kind = root.Number<uint8_t>(kHeaderKind);
  const auto body_bytes = root.Number<int64_t>(kBodyLength);
  const auto version = root.Number<int16_t>(kVersion);
  if (buffer.malformed() || !root.is_there()) return Malformed("it is no table");
  if (absl::Status status = CheckVersion(version); !status.ok()) return status;
  message->body = offset + head_bytes + bytes;
  if (body_bytes < 0) return Malformed(absl::StrCat("a body of ", body_bytes, " bytes"));
  message->body_bytes = static_cast<uint64_t>(body_bytes);
  if (message->body_bytes > end - message->body) {
    return absl::DataLossError(absl::StrCat("the file is cut inside of a message's body: expected ",
                                            body_bytes, " bytes from offset ", message->body,
                                            " on, found ", end - message->body));
  }
  return true;
}

absl::Status ArrowFile::ReadBatch(const Message& message, ArrowBatch* batch) const {
  FlatBuffer buffer(message.metadata);
  FlatTable table = buffer.Root().Table(kHeader);
  *batch = {};
  batch->offset = message.offset;
  if (message.kind == kDictionaryMessage) {
    batch->dictionary = table.Number<int64_t>(kId);
    batch->is_delta = table.Number<uint8_t>(kIsDelta) != 0;
    table = table.Table(kData);
  }
  if (!table.is_there()) return Malformed("it has no record batch");
  const auto rows = table.Number<int64_t>(kLength);
  if (rows < 0) return Malformed(absl::StrCat(rows, " rows"));
  batch->rows = static_cast<uint64_t>(rows);
  if (const FlatTable compression = table.Table(kCompression); compression.is_there()) {
    const auto codec = compression.Number<int8_t>(0);
    if (codec != 0 && codec != 1)
      return absl::InvalidArgumentError(absl::StrCat("buffers are compressed by codec ", codec,
                                                     ", which is unknown; expected ZSTD or none"));
    batch->codec = codec == 0 ? ArrowCodec::kLz4Frame : ArrowCodec::kZstd;
  }
  const FlatVector nodes = table.Vector(kNodes, kPairBytes);
  const FlatVector buffers = table.Vector(kBuffers, kPairBytes);
  const FlatVector further = table.Vector(kFurther, sizeof(int64_t));
  if (nodes.size() > kMaxArrowFields || further.size() > kMaxArrowFields ||
      buffers.size() > kMaxArrowBuffers) {
    return Malformed(absl::StrCat(nodes.size(), " columns and ", buffers.size(), " buffers"));
  }
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const auto length = nodes.Number<int64_t>(i), nulls = nodes.Number<int64_t>(i, 8);
    if (length < 0 || nulls < 0 || nulls > length)
      return Malformed(
          absl::StrCat("column ", i, " has ", length, " values, of which ", nulls, " are null"));
    batch->nodes.push_back({static_cast<uint64_t>(length), static_cast<uint64_t>(nulls)});
  }
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const auto offset = buffers.Number<uint64_t>(i), bytes = buffers.Number<uint64_t>(i, 8);
    // One of no bytes may lie anywhere.
    if (bytes > message.body_bytes || (bytes > 0 && offset > message.body_bytes - bytes)) {
      return Malformed(absl::StrCat("buffer ", i, " has ", bytes, " bytes at ", offset, " of ",
                                    message.body_bytes));
    }
    batch->buffers.push_back({message.body + (bytes > 0 ? offset : 0), bytes});
  }
  for (uint32_t i = 0; i < further.size(); ++i) {
    const auto count = further.Number<int64_t>(i);
    if (count < 0 || count > kMaxArrowBuffers)
      return Malformed(absl::StrCat(count, " buffers of a column"));
    batch->further_buffers.push_back(static_cast<uint64_t>(count));
  }
  if (buffer.malformed()) return Malformed("it is no table");
  return absl::OkStatus();
}

absl::Status ArrowFile::ForEachBatch(Take take, std::vector<Damage>* damage) {
  return footer_ ? TakeBlocks(take, damage) : TakeStream(take, damage);
}

absl::Status ArrowFile::TakeBlocks(Take take, std::vector<Damage>* damage) {
  Message message;
  ArrowBatch batch;
  uint64_t bytes = 0;  // of all messages
  for (const Block& block : *footer_) {
    absl::StatusOr<bool> found = ReadMessage(block.offset, messages_end_, &message);
    absl::Status status = found.status();
    // Else a small file could have one large message read millions of times.
    if (status.ok() && *found) bytes += message.end() - block.offset;
    if (bytes > messages_end_) {
      return WithAddress(absl::DataLossError("the footer lists messages that overlap"),
                         block.offset);
    }
    const uint8_t expected = block.is_dictionary ? kDictionaryMessage : kBatchMessage;
    if (status.ok() && (!*found || message.kind != expected)) {
      status = absl::DataLossError(absl::StrCat("expected a ",
                                                block.is_dictionary ? "dictionary" : "record batch",
                                                " where the footer says, found none"));
    }
    if (status.ok()) status = ReadBatch(message, &batch);
    if (status.ok()) status = take(batch);
    if (status.ok()) continue;
    // Without a dictionary nobody knows which rows are sound.
    const bool skips = on_damage_ != OnDamage::kFail && absl::IsDataLoss(status) &&
                       !IsFileShrunk(status) && !block.is_dictionary;
    if (!skips) return WithAddress(status, block.offset);
    const uint64_t begin = std::min(block.offset, messages_end_);
    const bool is_known = found.ok() && *found;
    const bool ends = on_damage_ == OnDamage::kSkipShard;
    damage->push_back({begin, (is_known && !ends ? message.end() : messages_end_) - begin,
                       found.ok() ? DamageReason::kLengthChecksum : DamageReason::kCutRecord});
    if (ends) break;
  }
  return absl::OkStatus();
}

absl::Status ArrowFile::TakeStream(Take take, std::vector<Damage>* damage) {
  Message message;
  ArrowBatch batch;
  for (uint64_t offset = stream_begin_;; offset = message.end()) {
    absl::StatusOr<bool> found = ReadMessage(offset, messages_end_, &message);
    if (found.ok() && !*found) {
      // Without the end of the stream there may have been more of it.
      if (has_lost_footer_ && offset == messages_end_)
        damage->push_back({offset, 0, DamageReason::kCutRecord});
      return absl::OkStatus();
    }
    absl::Status status = found.status();
    bool is_batch = false;
    if (status.ok() && message.kind != kBatchMessage && message.kind != kDictionaryMessage) {
      status =
          absl::DataLossError(absl::StrCat("expected a record batch, a dictionary or the end of "
                                           "the stream, found a message of kind ",
                                           message.kind));
    } else if (status.ok()) {
      is_batch = message.kind == kBatchMessage;
      status = ReadBatch(message, &batch);
      if (status.ok()) status = take(batch);
    }
    if (status.ok()) continue;
    const bool skips =
        on_damage_ != OnDamage::kFail && absl::IsDataLoss(status) && !IsFileShrunk(status);
    if (!skips) return WithAddress(status, offset);
    // Behind a message whose head is sound the next one is known.
    const bool goes_on = is_batch && on_damage_ == OnDamage::kSkipRecord;
    damage->push_back({offset, (goes_on ? message.end() : messages_end_) - offset,
                       found.ok() ? DamageReason::kLengthChecksum : DamageReason::kCutRecord});
    if (!goes_on) return absl::OkStatus();
  }
}

}  // namespace penstock
