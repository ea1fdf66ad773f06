#include "io/record/tar_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Of which of two samples a damaged head is.
enum class Owner { kBefore, kBehind, kNeither, kUnknown };

// Whether the damage is in the key alone: with this one in its place the head is sound.
bool IsRepairedBy(const std::string& block, absl::string_view found, const std::string& key) {
  if (found.size() != key.size()) return false;
  std::string repaired = block;
  std::memcpy(repaired.data(), key.data(), key.size());
  return IsTarHeader(reinterpret_cast<const uint8_t*>(repaired.data()));
}

Owner OwnerOf(const std::string& block, const std::string* before, const std::string* behind) {
  const auto* const head = reinterpret_cast<const uint8_t*>(block.data());
  if (block.size() < kTarBlockBytes || IsTarPathHeader(head)) return Owner::kUnknown;
  const absl::string_view path = TarPathField(head);
  absl::string_view key, extension;
  if (!SplitTarPath(path, &key, &extension)) return Owner::kUnknown;
  if (before != nullptr && key == *before) return Owner::kBefore;
  if (behind != nullptr && key == *behind) return Owner::kBehind;
  if (before != nullptr && IsRepairedBy(block, key, *before)) return Owner::kBefore;
  if (behind != nullptr && IsRepairedBy(block, key, *behind)) return Owner::kBehind;
  // What else is a head still has its mark, and letters in its path.
  const bool is_text =
      std::all_of(path.begin(), path.end(), [](char c) { return static_cast<uint8_t>(c) >= ' '; });
  return is_text && block.compare(257, 5, "ustar") == 0 ? Owner::kNeither : Owner::kUnknown;
}

std::string CutMemberMessage(uint64_t size) {
  return absl::StrCat("the file ends inside of a tar member: its data of ", size,
                      " bytes is not all there");
}

bool IsZeros(absl::Span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace

void TarStream::NextRecords(RecordChunk* chunk) {
  if (!begun_) at_ = window().offset();
  begun_ = true;
  while (taken() < ByteWindow::kPieceBytes && GoOn(chunk)) {
  }
}

absl::Span<const uint8_t> TarStream::AtHand() {
  const uint64_t begin = at_ - window().offset();
  if (begin >= window().size()) return {};
  return {window().data() + begin, window().size() - begin};
}

bool TarStream::Gather(RecordChunk* chunk, uint64_t bytes) {
  if (AtHand().size() >= bytes) return true;
  if (taken() > 0 || !chunk->records.empty()) return false;
  // A long sample of a plain file is read again by who wants it.
  const bool keeps = sample_ && !(is_plain() && at_ - sample_->begin > kLateRecordBytes);
  const uint64_t first = keeps ? sample_->begin : at_;
  absl::Status status = absl::OkStatus();
  if (first > window().offset()) status = window().Skip(first - window().offset());
  // A stream that ends in front of it has nothing more.
  if (status.ok()) status = window().Ensure(at_ - window().offset() + bytes);
  if (status.ok()) return true;
  EndOfStream(chunk, sample_ ? sample_->begin : at_, status);
  return false;
}

bool TarStream::GoOn(RecordChunk* chunk) {
  if (damaged_ && !damaged_->is_over) return SearchHead(chunk);
  TarHead::Found found;
  uint64_t wanted = kTarBlockBytes;
  while (true) {
    if (!Gather(chunk, wanted)) return false;
    found = ReadTarHead(AtHand(), &head_);
    if (found != TarHead::Found::kNeedsMore || AtHand().size() < wanted) break;
    wanted = head_.bytes;
  }
  switch (found) {
    case TarHead::Found::kNeedsMore:
      // Some programs leave out the zeros at the end, or have fewer.
      if (IsZeros(AtHand())) return TakeEnd(chunk);
      return TakeDamage(chunk, DamageReason::kCutHeader,
                        absl::StrCat("the file ends inside of a tar header: expected ", head_.bytes,
                                     " bytes, ", AtHand().size(), " are left"));
    case TarHead::Found::kEnd:
      return TakeEnd(chunk);
    case TarHead::Found::kRefused:
      Fail(chunk, at_, DamageReason::kValue,
           absl::DataLossError(absl::StrCat(head_.what,
                                            " is not read; pack the archive anew "
                                            "without (tar --format=pax)")));
      return false;
    case TarHead::Found::kDamaged:
      if (at_ == 0 && !skips_damage()) absl::StrAppend(&head_.what, "; is it a tar file?");
      return TakeDamage(chunk, DamageReason::kLengthChecksum, head_.what);
    case TarHead::Found::kMember:
      break;
  }
  absl::string_view key, extension;
  if (head_.is_regular() && !IsTarMeta(head_.path) && SplitTarPath(head_.path, &key, &extension)) {
    return TakeMember(chunk, key);
  }
  // Samples may have stood behind it.
  if (is_plain() && at_ + head_.bytes + head_.size > window().plain_end())
    return TakeDamage(chunk, DamageReason::kCutRecord, CutMemberMessage(head_.size));
  // It is of no sample, but may lie inside of one's bytes, of which there are not more than of any
  // record.
  const uint64_t end = at_ + head_.bytes + TarPadded(head_.size);
  if (sample_ && end - sample_->begin > kMaxRecordBytes) EndSample(chunk);
  at_ = end;
  return true;
}

bool TarStream::TakeMember(RecordChunk* chunk, absl::string_view key) {
  if (damaged_) {
    const std::string next(key);
    Judge(chunk, &next);
    // What was in front of the damage goes first; this member is looked at again.
    return chunk->records.empty();
  }
  if (lost_ && lost_->key != key) {
    EndLost(chunk);
    return false;
  }
  if (sample_ && sample_->key != key) EndSample(chunk);
  const uint64_t data_end = head_.bytes + head_.size;
  const uint64_t end = at_ + head_.bytes + TarPadded(head_.size);
  const uint64_t begin = sample_ ? sample_->begin : at_;
  bool is_cut = is_plain() && at_ + data_end > window().plain_end();
  const bool is_long = end - begin > kMaxRecordBytes;
  if (!is_cut && !is_long && !lost_ && !(is_plain() && end - begin > kLateRecordBytes)) {
    // They are handed on out of the window, where no padding need be behind the last of them. The
    // head's own strings may lie there.
    const std::string own_key(sample_ ? absl::string_view() : key);
    if (!Gather(chunk, end - at_)) return false;
    is_cut = AtHand().size() < data_end;
    if (!is_cut) {
      if (!sample_) sample_ = Sample{at_, 0, own_key};
      sample_->end = std::min(end, at_ + AtHand().size());
      at_ = end;
      return true;
    }
  }
  if (is_cut) {
    return TakeDamage(chunk, DamageReason::kCutRecord, CutMemberMessage(head_.size));
  }
  if (is_long && !lost_) {
    const std::string what =
        absl::StrCat("sample longer than limit: more than ", kMaxRecordBytes, " bytes");
    if (!skips_damage()) {
      Fail(chunk, begin, DamageReason::kTooLong, absl::DataLossError(what));
      return false;
    }
    lost_ = Lost{begin, DamageReason::kTooLong, std::string(key)};
    sample_.reset();
  }
  if (!lost_) {
    if (!sample_) sample_ = Sample{at_, 0, std::string(key)};
    sample_->end = std::min(end, window().plain_end());
  }
  at_ = end;
  return true;
}

bool TarStream::TakeDamage(RecordChunk* chunk, DamageReason reason, const std::string& what) {
  if (!skips_damage()) {
    Fail(chunk, at_, reason, absl::DataLossError(what));
    return false;
  }
  if (lost_) {
    EndLost(chunk);
    return false;
  }
  const absl::Span<const uint8_t> bytes = AtHand();
  const std::string block(reinterpret_cast<const char*>(bytes.data()),
                          std::min(bytes.size(), kTarBlockBytes));
  at_ += block.size();
  if (damaged_) {
    // Where no sound member is between two of them, nothing tells whose they were.
    damaged_->block.clear();
    damaged_->is_over = false;
  } else {
    damaged_ = Damaged{at_ - block.size(), reason, block};
  }
  return true;
}

bool TarStream::SearchHead(RecordChunk* chunk) {
  // A member that is cut is the last one.
  const bool may_go_on = damaged_->reason == DamageReason::kLengthChecksum;
  while (may_go_on) {
    if (!Gather(chunk, kTarBlockBytes)) return false;
    if (AtHand().size() < kTarBlockBytes) break;
    if (IsTarHeader(AtHand().data())) {
      damaged_->is_over = true;
      return true;
    }
    at_ += kTarBlockBytes;
    // The window does not grow for ever.
    if (sample_ && at_ - sample_->begin > kMaxRecordBytes) {
      damaged_->offset = sample_->begin;
      sample_.reset();
    }
  }
  return TakeEnd(chunk);
}

bool TarStream::TakeEnd(RecordChunk* chunk) {
  if (damaged_) {
    // The rest of a plain file is lost with it.
    if (!damaged_->is_over) at_ = is_plain() ? window().plain_end() : at_ + AtHand().size();
    Judge(chunk, nullptr);
    return chunk->records.empty();
  }
  if (lost_) {
    EndLost(chunk);
    return false;
  }
  if (sample_) {
    EndSample(chunk);
    return true;
  }
  End(chunk);
  return false;
}

void TarStream::Judge(RecordChunk* chunk, const std::string* next_key) {
  const std::string* const before = sample_ ? &sample_->key : nullptr;
  const bool is_one = before != nullptr && next_key != nullptr && *before == *next_key;
  const Owner owner = OwnerOf(damaged_->block, before, next_key);
  const bool loses_before = is_one || owner == Owner::kBefore || owner == Owner::kUnknown;
  const bool loses_behind = is_one || owner == Owner::kBehind || owner == Owner::kUnknown;
  Lost lost{damaged_->offset, damaged_->reason, ""};
  if (sample_ && loses_before) lost.begin = sample_->begin;
  // No sample has an empty key.
  if (next_key != nullptr && loses_behind) lost.key = *next_key;
  damaged_.reset();
  if (sample_ && !loses_before) EndSample(chunk);
  sample_.reset();
  lost_ = std::move(lost);
}

void TarStream::EndSample(RecordChunk* chunk) {
  const uint64_t length = sample_->end - sample_->begin;
  const bool late = is_plain() && (length > kLateRecordBytes || sample_->begin < window().offset());
  chunk->records.push_back({sample_->begin, static_cast<uint32_t>(length), late});
  // The window may have moved past the sample, where what is of none follows a long one.
  const uint64_t behind = std::max(sample_->end, window().offset()) - window().offset();
  const uint64_t end = std::min<uint64_t>(behind, window().size());
  if (end > taken()) Take(end - taken());
  sample_.reset();
}

void TarStream::EndLost(RecordChunk* chunk) {
  const uint64_t end = is_plain() ? std::min(at_, window().plain_end()) : at_;
  chunk->damage.push_back({lost_->begin, end - lost_->begin, lost_->reason});
  lost_.reset();
}

}  // namespace penstock
