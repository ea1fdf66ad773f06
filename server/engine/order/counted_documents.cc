// Documents of a window by their counts: no document is made.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/order/dataset.h"
#include "server/engine/order/pack_order.h"

namespace penstock {
namespace {

class CountedInput final : public PackInput {
 public:
  CountedInput(FrontContext& context, CountedDocuments documents, std::unique_ptr<OrderOp> input)
      : context_(context),
        counted_(std::move(documents)),
        loader_(*counted_.documents->SourceOf(counted_.counts->files().first)->loader),
        input_(std::move(input)) {}

  Pulled Pull(uint64_t count, RecordList& documents, std::vector<uint32_t>& tokens,
              uint64_t* pulled) override {
    if (!Open()) return status_.ok() ? Pulled::kBlocked : Pulled::kFailed;
    if (const Pulled gone_on = GoOn(); gone_on != Pulled::kSome) return gone_on;
    while (*pulled < count) {
      const Pulled result = PullRecords(count - *pulled);
      for (RecordRef& record : records_) {
        const uint32_t found = Find(record);
        if (!status_.ok()) break;
        if (found == TokenCounts::kLeftOut) {
          if (!LeaveOut(record)) break;
          continue;
        }
        documents.push_back(record);
        tokens.push_back(found);
        ++*pulled;
        ++taken_;
        record.data = nullptr;  // it is the window's
      }
      context_.store.Release(records_);
      if (!status_.ok()) return Pulled::kFailed;
      if (result == Pulled::kEnd && !WithinLimits(/*at_end=*/true)) return Pulled::kFailed;
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  // As a section has it, the path of whose one element of a record this is.
  uint64_t PathOf(const RecordRef& document) const override {
    return MixPath(counted_.documents->PathOf(&document), 0);
  }
  RecordRef OriginOf(const RecordRef& document) const override {
    RecordRef origin = loader_.Locate(document);
    origin.epoch = document.epoch;
    return origin;
  }

  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    taken_ = skipped_ = resume_at_ = 0;
    hint_ = {};
    status_ = absl::OkStatus();
    input_->Restart(epoch);
  }

  // As SectionOp has it: elements that were taken of the block that begins at the input's position,
  // in the pass, and failures.
  void Save(Position& position) const override {
    position.Add(resume_at_);
    position.Add(taken_);
    position.Add(skipped_);
    input_->Save(position);
  }
  absl::Status Restore(Position& position) override {
    resume_at_ = position.Take();
    taken_ = position.Take();
    skipped_ = position.Take();
    return input_->Restore(position);
  }
  absl::Status status() const override { return status_.ok() ? input_->status() : status_; }

 private:
  // False also while the counts are not there yet.
  bool Open() {
    if (open_ || !status_.ok()) return open_;
    absl::Status status;
    if (load_ == nullptr) {
      load_ = std::make_unique<LoadingOfCounts>(*counted_.counts, context_.files, counted_.stage);
      load_->Start(context_.errands);
    }
    if (!load_->done()) return false;
    status = load_->status();
    open_ = status.ok() &&
            counted_.counts->Open(context_.files, context_.errands, counted_.stage, &status);
    if (!status.ok()) Fail(status);
    return open_;
  }

  // Leaves out the documents that were taken before; what was left out among them was counted then.
  Pulled GoOn() {
    while (resume_at_ > 0) {
      const Pulled result = PullRecords(resume_at_);
      for (const RecordRef& record : records_) {
        const uint32_t found = Find(record);
        if (!status_.ok()) break;
        if (found != TokenCounts::kLeftOut) --resume_at_;
      }
      context_.store.Release(records_);
      if (!status_.ok()) return Pulled::kFailed;
      if (result == Pulled::kEnd) {
        Fail(absl::FailedPreconditionError(
            absl::StrCat("the cursor is after ", resume_at_, " documents more than there are")));
        return Pulled::kFailed;
      }
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  // Into records_. A call that was blocked has what there was.
  Pulled PullRecords(uint64_t count) {
    records_.clear();
    if (context_.interrupted()) return Pulled::kBlocked;
    uint64_t pulled = 0;
    const Pulled result = input_->Pull(count, records_, &pulled);
    for (RecordRef& record : records_) record.epoch = LaterPass(record, context_.PassOf(epoch_));
    return result;
  }

  uint32_t Find(const RecordRef& record) {
    const RecordRef place = loader_.Locate(record);
    const absl::StatusOr<uint32_t> found =
        counted_.counts->Find(place.file, place.offset, context_.files, &hint_);
    if (found.ok()) return *found;
    Fail(found.status());
    return TokenCounts::kLeftOut;
  }

  // False where it is one too many.
  bool LeaveOut(const RecordRef& record) {
    const RecordRef place = loader_.Locate(record);
    if (!counted_.ignored) {
      // The index was looked at when the plan was made, and left out nothing.
      Fail(absl::FailedPreconditionError(absl::StrCat(
          "its index of tokens leaves out a document now, and no ignore_errors follows: ",
          RemedyOfCounts(), " (", context_.files.manifest()[place.file].path, ", offset ",
          place.offset, ")")));
      return false;
    }
    ++skipped_;
    context_.damage.Add(
        {place.file,
         record.epoch,
         {place.offset, place.length, DamageReason::kValue},
         absl::StrCat("stage ", counted_.stage_name, ": its index of tokens leaves it out")});
    return WithinLimits(/*at_end=*/false);
  }

  bool WithinLimits(bool at_end) {
    if (!counted_.ignored) return true;
    const absl::Status status = counted_.ignored->Check(skipped_, taken_, at_end);
    if (!status.ok()) status_ = status;
    return status.ok();
  }

  void Fail(const absl::Status& status) {
    status_ = absl::Status(status.code(),
                           absl::StrCat("stage ", counted_.stage_name, ": ", status.message()));
  }

  FrontContext& context_;
  const CountedDocuments counted_;
  const ColumnLoader& loader_;  // of the records
  const std::unique_ptr<OrderOp> input_;
  std::unique_ptr<LoadingOfCounts> load_;  // null: not begun
  bool open_ = false;
  DocumentCounts::Hint hint_;
  RecordList records_;      // that were pulled last
  uint64_t epoch_ = 0;      // the pass
  uint64_t taken_ = 0;      // documents of it
  uint64_t skipped_ = 0;    // records of it that make none
  uint64_t resume_at_ = 0;  // documents to leave out before the next one
  absl::Status status_;
};

}  // namespace

std::unique_ptr<PackInput> DocumentsByCounts(FrontContext& context, CountedDocuments documents,
                                             std::unique_ptr<OrderOp> input) {
  return std::make_unique<CountedInput>(context, std::move(documents), std::move(input));
}

}  // namespace penstock
