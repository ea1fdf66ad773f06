#include "server/engine/stage/file_records_order.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "io/record/located_tfrecords.h"
#include "io/record/record_index.h"
#include "server/engine/order/file_stream.h"
#include "server/engine/order/interleave_state.h"

namespace penstock {
namespace {

// Fewer records are read and dropped rather than sought.
constexpr uint64_t kSeeksFrom = 4096;

// Files that are open ahead of their turn.
constexpr size_t kUpcomingMax = 64;
// A file on another machine of which so little is left will be followed by another one soon.
constexpr uint64_t kFarEndBytes = 32 << 20;

class FileRecordsOp final : public OrderOp {
 public:
  // Without files: that of the context's element.
  FileRecordsOp(FrontContext& context, std::optional<FileRange> files, const std::string& stage,
                const FileRecordsOptions& options)
      : context_(context),
        of_element_(!files),
        files_(files.value_or(FileRange{})),
        stage_(stage),
        options_(options),
        format_(ReadFormatOf(options)),
        cycle_(options.cycle_length) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (const Pulled result = GoToPosition(); result != Pulled::kSome) return result;
    // What is open at present may have come near its end.
    if (num_open_ > 0 && next_file_ < files_.count && IsFar(next_file_)) OpenUpcoming();
    const Pulled result = TakeRecords(count, out, pulled);
    if (result == Pulled::kEnd && !WithinLimits(/*at_end=*/true)) return Pulled::kFailed;
    return result;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    if (const Pulled result = GoToPosition(); result != Pulled::kSome) return result;
    const uint64_t left_out = count - *skipped;
    std::optional<uint64_t> records;
    if (left_out >= kSeeksFrom && !CountNow(*this, context_, &records)) return Pulled::kBlocked;
    if (!records) return SkipByPulling(*this, context_, count, skipped);
    const uint64_t before = taken_;
    if (!Seek(taken_ + left_out)) return Pulled::kFailed;
    *skipped += taken_ - before;
    return *skipped == count ? Pulled::kSome : Pulled::kEnd;
  }

  void Restart(uint64_t epoch) override {
    CloseAll();
    epoch_ = epoch;
    told_until_.clear();
    if (of_element_) {
      files_ = {context_.element_file, 1};
      counted_ = false;
      count_.reset();
    }
    next_file_ = 0;
    position_ = 0;
    taken_of_block_ = 0;
    taken_ = 0;
    skipped_ = skipped_at_taken_ = 0;
    resume_at_ = 0;
    status_ = absl::OkStatus();
  }

  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(taken_ + resume_at_);
    position.Add(resume_at_ > 0 ? skipped_at_resume_ : skipped_at_taken_);
  }

  absl::Status Restore(Position& position) override {
    Restart(position.Take());
    resume_at_ = position.Take();
    skipped_at_resume_ = position.Take();
    return absl::OkStatus();
  }

  std::optional<uint64_t> Count() override {
    // Where a damaged record ends its file, only reading tells.
    if (options_.format.access() == nullptr || options_.damage.skip_shard) return std::nullopt;
    if (counted_) return count_;
    uint64_t sum = 0;
    std::vector<uint64_t> counts;
    for (uint32_t i = 0; i < files_.count; ++i) {
      const auto index = AskIndex(i);
      if (!index) continue;
      counted_ = !index->ok();
      // A damaged file is reported when its records are read, in their order.
      if (counted_) return std::nullopt;
      counts.push_back((**index)->size());
      sum += (**index)->size();
    }
    // All of them have been asked for.
    if (counts.size() < files_.count) return std::nullopt;
    counted_ = true;
    counts_ = std::move(counts);
    count_ = sum;
    return count_;
  }

  uint32_t width() const override { return 1; }
  absl::Status status() const override { return status_; }

 private:
  static ReadFormat ReadFormatOf(const FileRecordsOptions& options) {
    ReadFormat format = options.format;
    if (options.are_located != nullptr && *options.are_located)
      format.stream.format = LocatedTfrecords();
    return format;
  }

  std::optional<FileTable::IndexOrError> AskIndex(uint32_t file) {
    return context_.files.AskIndex(files_.first + file, options_.format.stream.on_damage,
                                   context_.errands, options_.format.stage);
  }

  Pulled GoToPosition() {
    if (!status_.ok()) return Pulled::kFailed;
    if (resume_at_ == 0) return Pulled::kSome;
    const uint64_t target = std::exchange(resume_at_, 0);
    uint64_t skipped = 0;
    const Pulled result = Skip(target, &skipped);
    if (result != Pulled::kSome) {
      resume_at_ = target - skipped;
      return result;
    }
    // What was skipped on the way is in the cursor, whether it was met again or sought over.
    skipped_ = skipped_at_taken_ = skipped_at_resume_;
    return Pulled::kSome;
  }

  Pulled TakeRecords(uint64_t count, RecordList& out, uint64_t* pulled) {
    while (*pulled < count) {
      if (num_open_ == 0 && next_file_ == files_.count) return Pulled::kEnd;
      TakeAtHand(count, out, pulled);
      if (*pulled == count) break;
      std::unique_ptr<FileStream>& stream = cycle_[position_];
      if (!stream && !OpenNext(&stream)) {
        Advance();
        continue;
      }
      RecordRef record;
      Pulled result = stream->Next(&record);
      if (result == Pulled::kFailed && options_.damage.skip_shard &&
          absl::IsDataLoss(stream->status()) && !IsFileShrunk(stream->status())) {
        stream->damage().push_back(stream->lost());
        result = Pulled::kEnd;
      }
      if (!stream->damage().empty() && !NoteDamage(*stream)) return Pulled::kFailed;
      switch (result) {
        case Pulled::kSome:
          out.push_back(record);
          ++*pulled;
          ++taken_;  // at once: limits are judged by it, whatever the pull's size
          skipped_at_taken_ = skipped_;
          if (++taken_of_block_ == options_.block_length) Advance();
          break;
        case Pulled::kEnd:
          Retire(std::move(stream));
          --num_open_;
          Advance();
          break;
        case Pulled::kBlocked:
          return Pulled::kBlocked;
        case Pulled::kFailed:
          Fail(stream->status());
          return Pulled::kFailed;
      }
    }
    return Pulled::kSome;
  }

  // Takes what is at hand, up to the first file that has none, or more to tell. A file that is read
  // alone has one turn after the other.
  void TakeAtHand(uint64_t count, RecordList& out, uint64_t* pulled) {
    const uint64_t before = *pulled;
    while (*pulled < count && cycle_[position_] != nullptr) {
      const bool is_alone = cycle_.size() == 1;
      const uint64_t left = is_alone ? UINT64_MAX : options_.block_length - taken_of_block_;
      const auto taken = cycle_[position_]->TakeAtHand(std::min(count - *pulled, left));
      if (taken.empty()) break;
      if (taken.size() == 1) {
        out.push_back(taken[0]);
      } else {
        out.insert(out.end(), taken.begin(), taken.end());
      }
      *pulled += taken.size();
      if (!is_alone) taken_of_block_ += taken.size();
      if (taken_of_block_ == options_.block_length) Advance();
    }
    if (*pulled == before) return;
    taken_ += *pulled - before;
    skipped_at_taken_ = skipped_;
  }

  // Counts what was passed over; false when it is too much: at the first place that is, however
  // many were read.
  bool NoteDamage(FileStream& stream) {
    bool good = WithinLimits(/*at_end=*/false);
    for (const Damage& damage : stream.damage()) {
      if (!good) break;
      ++skipped_;
      Tell(stream.file(), damage);
      good = WithinLimits(/*at_end=*/false);
    }
    stream.damage().clear();
    return good;
  }

  bool WithinLimits(bool at_end) {
    absl::Status status = options_.damage.limits.Check(skipped_, taken_, at_end);
    if (status.ok()) return true;
    Fail(status);
    return false;
  }

  void Fail(const absl::Status& status) {
    status_ = absl::Status(status.code(), absl::StrCat("stage ", stage_, ": ", status.message()));
  }

  // Goes to the state behind `records` records of this pass. REQUIRES: Count() knows it.
  bool Seek(uint64_t records) {
    CloseAll();
    const InterleaveState state =
        InterleaveAfter(records, counts_, options_.cycle_length, options_.block_length);
    std::vector<std::optional<uint64_t>> ordinals(state.next_file);  // of the open files
    for (const InterleaveState::Slot& slot : state.cycle) {
      if (slot.open) ordinals[slot.file] = slot.ordinal;
    }
    skipped_ = 0;
    std::vector<FileStart> starts(state.next_file);
    for (uint32_t file = 0; file < state.next_file; ++file) {
      // What has been counted is there.
      const FileTable::IndexOrError index = *AskIndex(file);
      if (!index.ok()) {
        Fail(index.status());
        return false;
      }
      starts[file] = StartBehind(**index, ordinals[file]);
      NoteDamageBefore(starts[file].offset, file, (*index)->damage());
    }
    for (size_t i = 0; i < cycle_.size(); ++i) {
      if (!state.cycle[i].open) continue;
      const auto file = static_cast<uint32_t>(state.cycle[i].file);
      cycle_[i] = Open(file, starts[file]);
      ++num_open_;
    }
    next_file_ = static_cast<uint32_t>(state.next_file);
    position_ = state.position;
    taken_of_block_ = state.taken_of_block;
    taken_ = state.taken;
    skipped_at_taken_ = skipped_;
    return WithinLimits(/*at_end=*/false);
  }

  // Where a file goes on whose next record has that ordinal, in front of any damage there; its end
  // without one.
  static FileStart StartBehind(const RecordIndex& index, const std::optional<uint64_t>& ordinal) {
    if (!ordinal) return {index.data_bytes(), index.size()};
    if (*ordinal == 0) return {};
    return {index.end(*ordinal - 1), *ordinal};
  }

  // Counts what a pass that is sought over would have met.
  void NoteDamageBefore(uint64_t offset, uint32_t file, const std::vector<Damage>& found) {
    for (const Damage& damage : found) {
      if (damage.offset >= offset) break;
      ++skipped_;
      Tell(files_.first + file, damage);
    }
  }

  // Lists a damaged place, once in a pass: who seeks comes by places that were met before.
  void Tell(uint32_t file, const Damage& damage) {
    uint64_t& told = told_until_[file];
    if (damage.offset < told) return;
    told = damage.offset + 1;
    context_.damage.Add({file, context_.PassOf(epoch_), damage, ""});
  }

  void Advance() {
    position_ = position_ + 1 == cycle_.size() ? 0 : position_ + 1;
    taken_of_block_ = 0;
  }

  bool OpenNext(std::unique_ptr<FileStream>* stream) {
    if (next_file_ == files_.count) return false;
    *stream = upcoming_.empty() ? Open(next_file_, {}) : std::move(upcoming_.front());
    if (!upcoming_.empty()) upcoming_.pop_front();
    ++next_file_;
    ++num_open_;
    OpenUpcoming();
    return true;
  }

  // The next file is read ahead, so that its turn does not begin with a wait. Of files on other
  // machines, whose waits are longer, there are as many as there are places without one or with one
  // that ends soon, and of small ones as many as give kFarEndBytes to read.
  void OpenUpcoming() {
    while (upcoming_.size() < files_.count - next_file_) {
      const auto next = next_file_ + static_cast<uint32_t>(upcoming_.size());
      if (upcoming_.size() >= (IsFar(next) ? WantedAhead() : 1)) break;
      upcoming_.push_back(Open(next, {}));
    }
  }

  bool IsFar(uint32_t file) const {
    return IsAddress(context_.files.manifest()[files_.first + file].path);
  }

  size_t WantedAhead() const {
    size_t wanted = cycle_.size() - num_open_;
    uint64_t left = 0;
    for (const std::unique_ptr<FileStream>& stream : cycle_) {
      if (!stream) continue;
      left += stream->left_bytes();
      wanted += stream->left_bytes() < kFarEndBytes;
    }
    for (const std::unique_ptr<FileStream>& stream : upcoming_) left += stream->left_bytes();
    if (left < kFarEndBytes) wanted = std::max(wanted, upcoming_.size() + 1);
    return std::clamp<size_t>(wanted, 1, kUpcomingMax);
  }

  std::unique_ptr<FileStream> Open(uint32_t file, FileStart start) {
    // Files that are read in turns would all come to the end of a chunk at the same time, again and
    // again: all of their reads at once, and nothing to read in between. They begin with chunks of
    // different sizes.
    const uint64_t first_bytes = kChunkBytes * (file % cycle_.size() + 1) / cycle_.size();
    return std::make_unique<FileStream>(context_, format_, files_.first + file, start, first_bytes);
  }

  void CloseAll() {
    for (std::unique_ptr<FileStream>& stream : cycle_) {
      if (stream) Retire(std::move(stream));
    }
    for (std::unique_ptr<FileStream>& stream : upcoming_) Retire(std::move(stream));
    upcoming_.clear();
    num_open_ = 0;
    CloseRetired();
  }

  void CloseRetired() {
    std::erase_if(retired_, [](const std::unique_ptr<FileStream>& old) { return old->Close(); });
  }

  void Retire(std::unique_ptr<FileStream> stream) {
    CloseRetired();
    if (!stream->Close()) retired_.push_back(std::move(stream));
    stream.reset();
  }

  FrontContext& context_;
  const bool of_element_;
  FileRange files_;
  const std::string stage_;
  const FileRecordsOptions options_;
  const ReadFormat format_;  // that files are read by
  std::vector<std::unique_ptr<FileStream>> cycle_;
  std::deque<std::unique_ptr<FileStream>> upcoming_;  // from next_file_ on
  std::vector<std::unique_ptr<FileStream>> retired_;  // wait for their last read
  bool counted_ = false;
  std::optional<uint64_t> count_;
  std::vector<uint64_t> counts_;  // of each file; valid with count_
  uint64_t epoch_ = 0;
  std::map<uint32_t, uint64_t>
      told_until_;  // by file: in front of it all damage of this pass is listed
  uint32_t next_file_ = 0;
  size_t num_open_ = 0;
  size_t position_ = 0;  // in cycle_
  uint64_t taken_of_block_ = 0;
  uint64_t taken_ = 0;    // in this pass
  uint64_t skipped_ = 0;  // damaged places in this pass
  // Those in front of the record that was taken last: who goes on behind it meets the others again.
  uint64_t skipped_at_taken_ = 0;
  uint64_t resume_at_ = 0;  // records to leave out before the next one
  uint64_t skipped_at_resume_ = 0;
  absl::Status status_;
};

}  // namespace

OrderFactory FileRecords(FileRange files, const std::string& stage,
                         const FileRecordsOptions& options) {
  return [files, stage, options](FrontContext& context, OrderInputs) {
    return std::make_unique<FileRecordsOp>(context, files, stage, options);
  };
}

OrderFactory ElementRecords(const std::string& stage, const FileRecordsOptions& options) {
  return [stage, options](FrontContext& context, OrderInputs) {
    return std::make_unique<FileRecordsOp>(context, std::nullopt, stage, options);
  };
}

}  // namespace penstock
