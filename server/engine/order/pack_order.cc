#include "server/engine/order/pack_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory_charge.h"
#include "base/row_identity.h"
#include "server/engine/order/pack_gauge.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/read/packed_row.h"

namespace penstock {
namespace {

// Documents that are pulled at once; a window ends behind such a chunk, wherever the input was
// blocked in it.
constexpr uint64_t kChunkDocuments = 64;
// No document, and in no cell.
constexpr RecordRef kGone;

class CellsInput final : public PackInput {
 public:
  explicit CellsInput(std::unique_ptr<OrderOp> input) : input_(std::move(input)) {}

  Pulled Pull(uint64_t count, RecordList& documents, std::vector<uint32_t>& tokens,
              uint64_t* pulled) override {
    const size_t before = documents.size();
    const Pulled result = input_->Pull(count, documents, pulled);
    for (size_t i = before; i < documents.size(); ++i)
      tokens.push_back(static_cast<uint32_t>(ElementCells::First(documents[i])));
    return result;
  }
  uint64_t PathOf(const RecordRef& document) const override {
    return ElementCells::PackedPath(document);
  }
  RecordRef OriginOf(const RecordRef& document) const override { return document; }

  void Restart(uint64_t epoch) override { input_->Restart(epoch); }
  void Save(Position& position) const override { input_->Save(position); }
  absl::Status Restore(Position& position) override { return input_->Restore(position); }
  absl::Status status() const override { return input_->status(); }

 private:
  const std::unique_ptr<OrderOp> input_;
};

class PackOrderOp final : public OrderOp {
 public:
  PackOrderOp(FrontContext& context, const PackWindows& windows, std::unique_ptr<PackInput> input)
      : context_(context),
        windows_(windows),
        input_(std::move(input)),
        gauge_(context.packs != nullptr ? &context.packs[windows.stage] : nullptr),
        packer_(Packer::Make(windows_.rules)),
        cells_(context.store) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    return Go(count, &out, pulled);
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override { return Go(count, nullptr, skipped); }

  void Restart(uint64_t epoch) override {
    EndWindow();
    cells_.Drain();
    resume_at_ = 0;
    result_ = Pulled::kSome;
    status_ = absl::OkStatus();
    input_->Restart(epoch);
  }

  void Save(Position& position) const override {
    position.Add(std::max(next_, resume_at_));
    if (!is_open_) return input_->Save(position);
    for (const uint64_t counter : start_.counters()) position.Add(counter);
  }
  absl::Status Restore(Position& position) override {
    resume_at_ = position.Take();
    return input_->Restore(position);
  }

  std::optional<uint64_t> Count() override { return std::nullopt; }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return status_.ok() ? input_->status() : status_; }

 private:
  // Hands on sequences or, without `out`, leaves them out.
  Pulled Go(uint64_t count, RecordList* out, uint64_t* done) {
    if (!status_.ok()) return Pulled::kFailed;
    while (*done < count) {
      if (context_.interrupted()) return Pulled::kBlocked;
      while (next_ < packer_->num_sequences() && *done < count) {
        if (next_ < resume_at_ || out == nullptr) {
          *done += next_ < resume_at_ ? 0 : 1;
          LeaveOut(next_++);
        } else {
          HandOn(next_++, *out);
          ++*done;
        }
      }
      // So that the position of a window's end is that of the next one's beginning.
      if (is_finished_ && next_ == packer_->num_sequences()) {
        if (next_ < resume_at_) {
          status_ = absl::FailedPreconditionError(
              absl::StrCat("the cursor is after sequence ", resume_at_,
                           " of a window of documents that makes ", next_));
          return Pulled::kFailed;
        }
        EndWindow();
        resume_at_ = 0;
      }
      if (*done == count) break;
      if (!is_open_ && result_ != Pulled::kSome) {
        if (resume_at_ == 0) return result_;
        is_open_ = is_finished_ = true;  // with no sequence
        continue;
      }
      if (const Pulled result = Fill(); result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  // Takes more documents into the window, and finishes it where there are enough. kBlocked,
  // kFailed: nothing has come of that.
  Pulled Fill() {
    if (is_finished_) return Pulled::kSome;
    if (!is_open_) {
      start_.Clear();
      input_->Save(start_);
      is_open_ = true;
    }
    if (chunk_left_ == 0)
      chunk_left_ = std::min(kChunkDocuments, windows_.window - documents_.size());
    charge_.MakeRoom(documents_, chunk_left_);
    charge_.MakeRoom(lengths_, chunk_left_);
    uint64_t pulled = 0;
    const Pulled result = input_->Pull(chunk_left_, documents_, lengths_, &pulled);
    chunk_left_ -= pulled;
    for (size_t i = documents_.size() - pulled; i < documents_.size(); ++i) {
      const uint32_t tokens = lengths_[i];
      tokens_ += tokens;
      packer_->Add(tokens);
      if (gauge_ != nullptr) gauge_->AddDocument();
      if (tokens == 0) Release(&documents_[i]);
    }
    if (result == Pulled::kBlocked) return pulled > 0 ? Pulled::kSome : result;
    // What came before a failure is packed as far as it is certain: the rest of the window is not.
    if (result == Pulled::kFailed) {
      result_ = result;
      return packer_->num_sequences() > next_ ? Pulled::kSome : result;
    }
    if (result == Pulled::kEnd) result_ = result;
    if (result == Pulled::kEnd || documents_.size() == windows_.window ||
        tokens_ >= PackWindows::kMaxWindowTokens) {
      packer_->Finish();
      is_finished_ = true;
    }
    return Pulled::kSome;
  }

  void HandOn(uint64_t sequence, RecordList& out) {
    const absl::Span<const PackedPiece> pieces = packer_->Sequence(sequence);
    const RecordRef& first = documents_[pieces.front().document];
    const uint64_t path = MixPath(input_->PathOf(first), pieces.front().start);
    RecordRef row = input_->OriginOf(first);
    row.length = PackedRow::CellBytes(pieces.size());
    uint8_t* const cell = cells_.Take(row.length);
    row.data = cell;
    row.in_map = 0;
    row.resolved = 0;
    cut_.clear();
    of_.clear();
    uint64_t tokens = 0;
    for (const PackedPiece& piece : pieces) {
      RecordRef& document = documents_[piece.document];
      cut_.push_back({piece.start, piece.length, lengths_[piece.document]});
      of_.push_back(document);
      tokens += piece.length;
      // The last piece has the window's share of it.
      if (piece.is_last) {
        document = kGone;
      } else {
        context_.store.Share({&document, 1});
      }
    }
    PackedRow::Write(path, cut_, of_, cell);
    context_.store.Own(cell, of_);
    out.push_back(row);
    if (gauge_ != nullptr)
      gauge_->AddSequence(pieces.size(), tokens, windows_.rules.sequence_length - tokens);
  }

  void LeaveOut(uint64_t sequence) {
    for (const PackedPiece& piece : packer_->Sequence(sequence)) {
      if (piece.is_last) Release(&documents_[piece.document]);
    }
  }

  // Nobody is to look at it any more.
  void Release(RecordRef* document) {
    context_.store.Release({document, 1});
    *document = kGone;
  }

  void EndWindow() {
    context_.store.Release(documents_);
    documents_.clear();
    lengths_.clear();
    packer_->Clear();
    next_ = chunk_left_ = tokens_ = 0;
    is_open_ = is_finished_ = false;
  }

  FrontContext& context_;
  const PackWindows windows_;
  const std::unique_ptr<PackInput> input_;
  PackGauge* const gauge_;  // may be null
  const std::unique_ptr<Packer> packer_;
  CellCache cells_;
  MemoryCharge charge_;  // of documents_ and lengths_

  // The window that is packed.
  bool is_open_ = false;
  bool is_finished_ = false;       // no more documents come into it
  Position start_;                 // of the input, in front of it
  RecordList documents_;           // kGone where the window no longer has it
  std::vector<uint32_t> lengths_;  // of those, in tokens
  uint64_t chunk_left_ = 0;        // of the chunk that is being pulled
  uint64_t tokens_ = 0;
  uint64_t next_ = 0;  // its sequence

  uint64_t resume_at_ = 0;         // the first sequence of the window that is handed on
  Pulled result_ = Pulled::kSome;  // what the input came to
  absl::Status status_;
  std::vector<PackedRow::Piece> cut_;  // of the sequence that is handed on
  RecordList of_;                      // the same
};

}  // namespace

std::unique_ptr<PackInput> DocumentsInCells(std::unique_ptr<OrderOp> input) {
  return std::make_unique<CellsInput>(std::move(input));
}

std::unique_ptr<OrderOp> PackOrder(FrontContext& context, const PackWindows& windows,
                                   std::unique_ptr<PackInput> input) {
  return std::make_unique<PackOrderOp>(context, windows, std::move(input));
}

}  // namespace penstock
