#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_charge.h"
#include "base/random.h"
#include "base/stop_flag.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/spec/drawn_seed.h"
#include "server/engine/stage/global_records.h"

namespace penstock {
namespace {

constexpr int64_t kMaxBufferSize = int64_t{1} << 31;
// Elements taken at a time while the buffer is put together again, and how many are rather pulled
// for nothing than left out.
constexpr uint64_t kPulledAtOnce = 1024;
// How many arrive at a time while the buffer is filled: what comes is in two lists meanwhile.
constexpr uint64_t kFilledAtOnce = 16384;
constexpr uint64_t kSmallGap = 2048;
constexpr size_t kDrawnAtOnce = 32;
constexpr uint64_t kDrawsBetweenLooks = 65536;

// A buffer of waiting elements. Draw number i of an epoch picks the place whose element goes out
// i-th; the next input takes that place, and once the input is over the last place does. So the
// buffer's state is a function of the draws alone, and its position the epoch and the number of
// elements that have gone out: the draws say which inputs wait where (Rebuild).
class ShuffleOp final : public ChainedOrderOp {
 public:
  ShuffleOp(FrontContext& context, std::unique_ptr<OrderOp> input, uint64_t buffer_size,
            uint64_t key, bool reshuffle)
      : ChainedOrderOp(std::move(input)),
        context_(context),
        buffer_size_(buffer_size),
        key_(key),
        reshuffle_(reshuffle),
        draws_(key, 0) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (const Pulled result = GoToPosition(); result != Pulled::kSome) return result;
    while (*pulled < count) {
      // Input is wanted to fill the buffer, and then one element for each that goes out.
      const bool filling = places_ < buffer_size_;
      if (!input_over_) {
        uint64_t arrived = 0;
        incoming_.clear();
        const Pulled result = input().Pull(
            filling ? std::min(buffer_size_ - places_, kFilledAtOnce) : count - *pulled, incoming_,
            &arrived);
        if (filling) {
          charge_.MakeRoom(buffer_, incoming_.size());
          buffer_.insert(buffer_.end(), incoming_.begin(), incoming_.end());
          places_ += arrived;
        } else if (width() == 1) {
          ExchangeRecords(out);
          *pulled += arrived;
        } else {
          for (uint64_t i = 0; i < arrived; ++i) {
            RecordRef* place = Place(draws_.Below(num_draws_++, places_));
            out.insert(out.end(), place, place + width());
            std::copy_n(&incoming_[i * width()], width(), place);
          }
          *pulled += arrived;
        }
        if (result == Pulled::kBlocked) return result;
        if (result == Pulled::kFailed) {
          // Of a full buffer one more goes out: which one, what comes next has no part in. Of those
          // that are left it has.
          if (places_ < buffer_size_ || *pulled == count) return result;
          DrawLast(out);
          return ++*pulled == count ? Pulled::kSome : result;
        }
        input_over_ = result == Pulled::kEnd;
        continue;
      }
      if (places_ == 0) return Pulled::kEnd;
      const uint64_t left = std::min(count - *pulled, places_);
      for (uint64_t i = 0; i < left; ++i) DrawLast(out);
      *pulled += left;
    }
    return Pulled::kSome;
  }

  // From the start of a pass: the buffer is put together behind the skipped elements. Within a pass
  // they are drawn and dropped.
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    if (num_draws_ == 0 && places_ == 0 && !input_over_ && resume_at_ == 0 && !rebuild_) {
      std::optional<uint64_t> length;
      if (!CountNow(input(), context_, &length)) return Pulled::kBlocked;
      const uint64_t wanted = count - *skipped;
      if (length && wanted > kSmallGap) {
        resume_at_ = std::min(wanted, *length);
        *skipped += resume_at_;
        if (resume_at_ < wanted) {
          // Nothing is left of this pass.
          resume_at_ = 0;
          input_over_ = true;
          return Pulled::kEnd;
        }
        return Pulled::kSome;
      }
    }
    return SkipByPulling(*this, context_, count, skipped);
  }

  void Restart(uint64_t epoch) override {
    context_.store.Release(buffer_);
    buffer_.clear();
    places_ = 0;
    input_over_ = false;
    num_draws_ = 0;
    epoch_ = epoch;
    resume_at_ = 0;
    rebuild_.reset();
    draws_ = DrawSequence(key_, reshuffle_ ? epoch : 0);
    ChainedOrderOp::Restart(epoch);
  }

  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(resume_at_ + num_draws_);
  }

  absl::Status Restore(Position& position) override {
    Restart(position.Take());
    resume_at_ = position.Take();
    return absl::OkStatus();
  }

  absl::Status status() const override { return status_.ok() ? ChainedOrderOp::status() : status_; }

 private:
  // The way back to a position: which inputs wait at which place, in the order in which they
  // arrive.
  struct Rebuild {
    struct Waiting {
      uint64_t ordinal;  // of the input
      uint64_t place;
    };
    MemoryCharge charge;  // of its lists
    std::vector<Waiting> waiting;
    size_t next = 0;       // the first that has not arrived
    uint64_t arrived = 0;  // inputs gone through
    uint64_t end = 0;      // inputs to go through
  };

  RecordRef* Place(uint64_t place) { return &buffer_[place * width()]; }

  // One goes out, and nothing comes for it.
  void DrawLast(RecordList& out) {
    const uint32_t width = this->width();
    RecordRef* const place = &buffer_[draws_.Below(num_draws_++, places_) * size_t{width}];
    --places_;
    if (width == 1) {
      out.push_back(*place);
      *place = buffer_.back();
      buffer_.pop_back();
      return;
    }
    out.insert(out.end(), place, place + width);
    std::copy_n(Place(places_), width, place);
    buffer_.resize(places_ * width);
  }

  // Each of incoming_ takes the place of one that goes out. Batches that are written meanwhile push
  // the buffer out of the nearer caches, so the places are known, and on their way, before they are
  // needed.
  void ExchangeRecords(RecordList& out) {
    uint64_t places[kDrawnAtOnce];
    for (size_t first = 0; first < incoming_.size(); first += kDrawnAtOnce) {
      const size_t count = std::min(kDrawnAtOnce, incoming_.size() - first);
      for (size_t i = 0; i < count; ++i) {
        places[i] = draws_.Below(num_draws_ + i, places_);
        // It may reach into a second line.
        const RecordRef* const place = &buffer_[places[i]];
        __builtin_prefetch(place, /*rw=*/1);
        __builtin_prefetch(reinterpret_cast<const char*>(place + 1) - 1, /*rw=*/1);
      }
      num_draws_ += count;
      for (size_t i = 0; i < count; ++i)
        out.push_back(std::exchange(buffer_[places[i]], incoming_[first + i]));
    }
  }

  Pulled GoToPosition() {
    if (resume_at_ == 0 && !rebuild_) return Pulled::kSome;
    if (!rebuild_) {
      // Whoever is on the way forwards stays on it, though the length may have become known
      // meanwhile: a buffer is put together from the input's start.
      const bool at_start = num_draws_ == 0 && places_ == 0 && !input_over_;
      std::optional<uint64_t> length;
      if (at_start && !CountNow(input(), context_, &length)) return Pulled::kBlocked;
      if (!length) {
        // Forwards: what goes out is dropped until the position is reached.
        const uint64_t target = std::exchange(resume_at_, 0);
        uint64_t skipped = 0;
        const Pulled result = SkipByPulling(*this, context_, target, &skipped);
        resume_at_ = target - skipped;
        if (result == Pulled::kBlocked) {
          // What was drawn is counted by num_draws_.
          return result;
        }
        resume_at_ = 0;
        return result;
      }
      const uint64_t target = std::exchange(resume_at_, 0);
      if (target > *length) {
        status_ = absl::InvalidArgumentError(absl::StrCat("the cursor is after element ", target,
                                                          " of an input that has ", *length));
        return Pulled::kFailed;
      }
      StartRebuild(target, *length);
    }
    return ContinueRebuild();
  }

  // Only the last write to a place counts, so the draws are gone through backwards until every
  // place is known: about buffer_size ln(buffer_size) of them, however far in.
  void StartRebuild(uint64_t target, uint64_t length) {
    const uint64_t places = std::min(buffer_size_, length);
    const uint64_t steady =
        std::min(target, length - places);  // draws that were followed by an input
    constexpr uint64_t kUnknown = ~uint64_t{0};
    auto rebuild = std::make_unique<Rebuild>();
    rebuild->charge.Add(places * (sizeof(Rebuild::Waiting) + sizeof(uint64_t)));
    std::vector<uint64_t> ordinals(places, kUnknown);
    uint64_t left = places;
    for (uint64_t draw = steady; draw-- > 0 && left > 0;) {
      if (draw % kDrawsBetweenLooks == 0) CheckStop();
      uint64_t& ordinal = ordinals[draws_.Below(draw, places)];
      if (ordinal != kUnknown) continue;
      ordinal = places + draw;
      --left;
    }
    for (uint64_t place = 0; place < places; ++place) {
      if (ordinals[place] == kUnknown) ordinals[place] = place;
    }
    for (uint64_t draw = steady; draw < target; ++draw) {
      ordinals[draws_.Below(draw, ordinals.size())] = ordinals.back();
      ordinals.pop_back();
    }
    rebuild_ = std::move(rebuild);
    rebuild_->waiting.reserve(ordinals.size());
    rebuild_->end = places + steady;
    for (uint64_t place = 0; place < ordinals.size(); ++place)
      rebuild_->waiting.push_back({ordinals[place], place});
    std::sort(rebuild_->waiting.begin(), rebuild_->waiting.end(),
              [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
    places_ = ordinals.size();
    charge_.MakeRoom(buffer_, places_ * width() - std::min(places_ * width(), buffer_.size()));
    buffer_.assign(places_ * width(), RecordRef{});
    num_draws_ = target;
    // In the steady state nobody has asked for the end of the input yet.
    input_over_ = target > steady;
  }

  Pulled ContinueRebuild() {
    Rebuild& rebuild = *rebuild_;
    while (rebuild.arrived < rebuild.end) {
      const uint64_t next = rebuild.next < rebuild.waiting.size()
                                ? rebuild.waiting[rebuild.next].ordinal
                                : rebuild.end;
      if (next - rebuild.arrived > kSmallGap || next == rebuild.end) {
        uint64_t skipped = 0;
        const Pulled result = input().Skip(next - rebuild.arrived, &skipped);
        rebuild.arrived += skipped;
        if (result != Pulled::kSome) return InputIsShort(result);
        continue;
      }
      uint64_t pulled = 0;
      incoming_.clear();
      const Pulled result =
          input().Pull(std::min(kPulledAtOnce, rebuild.end - rebuild.arrived), incoming_, &pulled);
      for (uint64_t i = 0; i < pulled; ++i) Arrive(rebuild.arrived++, &incoming_[i * width()]);
      if (result != Pulled::kSome) return InputIsShort(result);
    }
    rebuild_.reset();
    return Pulled::kSome;
  }

  void Arrive(uint64_t ordinal, const RecordRef* element) {
    Rebuild& rebuild = *rebuild_;
    if (rebuild.next < rebuild.waiting.size() && rebuild.waiting[rebuild.next].ordinal == ordinal) {
      std::copy_n(element, width(), Place(rebuild.waiting[rebuild.next++].place));
    } else {
      context_.store.Release(absl::MakeConstSpan(element, width()));
    }
  }

  // The index has promised more.
  Pulled InputIsShort(Pulled result) {
    if (result != Pulled::kEnd) return result;
    status_ = absl::FailedPreconditionError(absl::StrCat(
        "the input has ", rebuild_->arrived, " elements, the cursor is after ", rebuild_->end));
    return Pulled::kFailed;
  }

  FrontContext& context_;
  const uint64_t buffer_size_;
  const uint64_t key_;
  const bool reshuffle_;
  DrawSequence draws_;
  uint64_t epoch_ = 0;
  uint64_t num_draws_ = 0;
  MemoryCharge charge_;  // of the buffer
  RecordList buffer_;    // places_ elements
  uint64_t places_ = 0;
  RecordList incoming_;
  bool input_over_ = false;
  uint64_t resume_at_ = 0;            // elements of this pass to leave out before the next one
  std::unique_ptr<Rebuild> rebuild_;  // null: there is none
  absl::Status status_;
};

// A permutation of the source takes its place.
absl::Status PlanGlobal(const v1::Shuffle& options, uint64_t key, bool reshuffle,
                        PlanBuilder& plan) {
  GlobalReach reach;
  reach.read_first = options.read_first();
  if (options.block_size() != 0) {
    if (options.block_size() < 1 || options.block_size() >= kMaxBufferSize) {
      return absl::InvalidArgumentError(absl::StrCat(
          "block_size: expected 1 to ", kMaxBufferSize - 1, ", found ", options.block_size()));
    }
    if (options.buffer_size() < options.block_size() || options.buffer_size() >= kMaxBufferSize) {
      return absl::InvalidArgumentError(absl::StrCat(
          "buffer_size: the records of so many are permuted among each other, whole blocks of ",
          options.block_size(), "; expected that to ", kMaxBufferSize - 1, ", found ",
          options.buffer_size()));
    }
    reach.block_size = options.block_size();
    reach.group_blocks = (options.buffer_size() - 1) / options.block_size() + 1;
  } else if (options.buffer_size() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer_size: a global shuffle without a block_size has no buffer; expected "
                     "none, found ",
                     options.buffer_size()));
  }
  if (!plan.indexed()) {
    return absl::InvalidArgumentError(
        "global: expected to stand directly after a source of records in uncompressed files, whose "
        "index it permutes, or after load; for other sources give a buffer_size, recompress "
        "(penstock write) or move it");
  }
  const IndexedFiles indexed = *plan.indexed();
  if (indexed.permuted != nullptr) {
    plan.AddOrder(indexed.permuted(key, reshuffle));
    return absl::OkStatus();
  }
  plan.NeedIndex(indexed);
  auto records = std::make_shared<GlobalRecords>(indexed, reach, key);
  plan.ReorderSource(GlobalLoader(records),
                     GlobalOrder(records, plan.stage(), plan.stage_index(), reshuffle));
  return absl::OkStatus();
}

const OpRegistration<v1::Shuffle> kShuffle(
    "shuffle",
    {.gives = Given::kOneEach, .counts_failures = true, .seed = v1::Shuffle::kSeedFieldNumber},
    [](const v1::Shuffle& options, PlanBuilder& plan) -> absl::Status {
      v1::Shuffle& resolved = *plan.stage_spec().mutable_shuffle();
      if (!resolved.has_seed()) resolved.set_seed(DrawSeed());
      const uint64_t key = plan.DrawKey(resolved.seed());
      const bool reshuffle =
          !options.has_reshuffle_each_iteration() || options.reshuffle_each_iteration();
      if (options.global()) return PlanGlobal(options, key, reshuffle, plan);
      if (options.block_size() != 0 || options.read_first()) {
        return absl::InvalidArgumentError(
            absl::StrCat(options.read_first() ? "read_first" : "block_size",
                         ": is for a global shuffle; expected global: true beside it"));
      }
      if (options.buffer_size() < 1 || options.buffer_size() >= kMaxBufferSize) {
        return absl::InvalidArgumentError(absl::StrCat(
            "buffer_size: expected 1 to ", kMaxBufferSize - 1, ", found ", options.buffer_size()));
      }
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      plan.AddOrder(
          [buffer_size = options.buffer_size(), key, reshuffle](FrontContext& context,
                                                                OrderInputs inputs) {
            return std::make_unique<ShuffleOp>(context, std::move(inputs[0]), buffer_size, key,
                                               reshuffle);
          },
          CursorClass::kReplayOrder);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
