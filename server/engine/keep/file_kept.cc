#include "server/engine/keep/file_kept.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/keep/kept_errands.h"
#include "server/engine/keep/kept_gauge.h"
#include "server/engine/keep/kept_parts.h"

namespace penstock {
namespace {

constexpr size_t kBlocksInFlight = 16;
// The first block is small, so that little waits in it; each further one is twice as large up to
// the last of these.
constexpr uint64_t kFirstBlockBytes = uint64_t{16} << 10;
constexpr uint64_t kBlockBytes = uint64_t{1} << 20;
constexpr size_t kBlockElements = 4096;
// How often a folder's size is looked at, as others write there too.
constexpr uint64_t kLookBytes = uint64_t{64} << 20;
// A file that goes on behind others has at least this part of their elements, so that there are
// never many.
constexpr uint64_t kWorthwhile = 16;
// Passes between two attempts to write where there was no room, at most.
constexpr uint64_t kMaxPatience = 64;

class FileKept final : public KeptElements {
 public:
  FileKept(FrontContext& context, std::shared_ptr<const FileCache> cache, const ElementCells& cells,
           int stage, Unwritten unwritten)
      : context_(context),
        cache_(std::move(cache)),
        stage_(stage),
        unwritten_(unwritten),
        parts_(context, cache_, cells, stage) {}

  bool BeginPass() override {
    if (looking_ == nullptr) {
      tried_ = false;
      const bool is_writing = writer_ != nullptr || starting_ != nullptr;
      if (is_writing || !cache_->reads() || parts_.whole()) return true;
      if (passes_to_wait_ > 0) --passes_to_wait_;
      looking_ =
          std::make_unique<KeptLook>(cache_, Behind(), /*asks_room=*/passes_to_wait_ == 0, stage_);
      looking_->Start(context_.errands);
    }
    if (!looking_->done()) return false;
    const std::unique_ptr<KeptLook> look = std::move(looking_);
    parts_.Take(std::move(look->found));
    if (const std::string notice = parts_.TakeNotice(); !notice.empty())
      context_.files.Tell(notice);
    has_room_ = passes_to_wait_ == 0 && IsWorthwhile(look->room);
    ShowParts();
    return true;
  }

  bool IsReady(uint64_t ordinal) override {
    GoOn();
    if (ending_ != nullptr || in_flight_.size() >= kBlocksInFlight) return false;
    // What is to be written has a file first.
    if (writer_ == nullptr && Wants(ordinal)) Begin();
    return starting_ == nullptr;
  }

  bool Has(uint64_t ordinal) const override { return ordinal < parts_.size(); }

  Pulled Deal(uint64_t ordinal, RecordList& out) override {
    ElementFile::Element element;
    const uint8_t* data = nullptr;
    const KeptParts::Found found = parts_.Find(ordinal, &element, &data);
    if (found == KeptParts::Found::kWaits) return Pulled::kBlocked;
    if (found == KeptParts::Found::kGone) {
      // What goes on behind a file that is no more there has no use either.
      if (writer_ != nullptr) Fill();
      has_room_ = true;
      ShowParts();
      return Pulled::kEnd;
    }
    RecordRef& reference = out.emplace_back();
    reference.data = data;
    reference.offset = element.offset;
    reference.length = element.length;
    reference.file = cache_->first_file() + element.file;
    reference.epoch = element.epoch;
    reference.in_map = 1;
    if (KeptGauge* const gauge = Gauge()) gauge->Hit();
    return Pulled::kSome;
  }

  bool Wants(uint64_t ordinal) const override {
    if (parts_.whole() || full_ || done_ || ordinal != next()) return false;
    return writer_ != nullptr || starting_ != nullptr || MayBegin();
  }

  void Keep(uint64_t ordinal, const RecordRef& element) override {
    if (writer_ == nullptr || full_ || done_ || ordinal != next()) return;
    if (writer_->BytesWith(element.length) > room_) {
      Fill();
      return;
    }
    context_.store.Share({&element, 1});
    if (block_ == nullptr) {
      block_ = std::make_unique<KeptBlock>(writer_, context_.store, stage_);
    }
    ElementFile::Element place;
    place.offset = element.offset;
    place.epoch = element.epoch;
    place.length = element.length;
    place.file = element.file - cache_->first_file();
    if (cache_->sharded()) {
      const int64_t shard = ElementCells::First(element);
      if (shard < 0 || shard > UINT32_MAX) {
        failure_ = absl::InvalidArgumentError(absl::StrCat("the number of a shard: expected 0 to ",
                                                           UINT32_MAX, ", found ", shard,
                                                           " (element ", ordinal, ")"));
        Fill();
        return;
      }
      place.file = static_cast<uint32_t>(shard);
    }
    block_->places.push_back(writer_->Add(place));
    block_->records.push_back(element);
    block_->data.push_back(element.data);
    block_->bytes += element.length;
    if (block_->bytes >= block_bytes_ || block_->records.size() == kBlockElements) Flush();
    Show(KeptState::kFilling, next(), parts_.bytes() + writer_->bytes());
  }

  Pulled End(uint64_t length) override {
    // There is no element to begin with, or the last one is there and nobody knew that it is the
    // last.
    if (writer_ == nullptr && Wants(length)) Begin();
    if (starting_ != nullptr && !TakeStarted()) return Pulled::kBlocked;
    if (writer_ != nullptr && !full_ && next() == length) {
      Flush();
      ended_ = true;
    }
    GoOn();
    if (!status_.ok()) return Pulled::kFailed;
    return ending_ != nullptr || (writer_ != nullptr && (ended_ || full_)) ? Pulled::kBlocked
                                                                           : Pulled::kEnd;
  }

  std::optional<uint64_t> Count() const override {
    if (!parts_.whole()) return std::nullopt;
    return parts_.size();
  }

  void GiveBack() override {
    if (block_ != nullptr) context_.store.Release(block_->records);
    block_.reset();
    writer_.reset();
    full_ = ended_ = false;
    done_ = true;
  }

  absl::Status status() const override { return status_; }

 private:
  KeptGauge* Gauge() const {
    return context_.gauges == nullptr ? nullptr : &context_.gauges[stage_];
  }
  void Show(KeptState state, uint64_t elements, uint64_t bytes) const {
    if (KeptGauge* const gauge = Gauge()) gauge->Set(state, elements, bytes);
  }
  // What is there while nothing is written.
  void ShowParts() const {
    KeptState state = KeptState::kComputing;
    if (parts_.whole()) {
      state = KeptState::kWhole;
    } else if (disk_is_full_) {
      state = KeptState::kDiskFull;
    } else if (parts_.size() > 0) {
      state = KeptState::kFull;
    } else if (given_up_) {
      state = KeptState::kFailed;
    }
    Show(state, parts_.size(), parts_.bytes());
  }

  // The number of the element that is written next.
  uint64_t next() const {
    return writer_ == nullptr ? parts_.size() : writer_->first() + writer_->elements();
  }

  // Whether it is worth the work to go on behind what is there, if anything is, in so much room.
  bool IsWorthwhile(uint64_t room) const {
    if (parts_.size() == 0) return true;
    return !parts_.full() && room > parts_.bytes() / kWorthwhile;
  }

  KeptBehind Behind() const { return {parts_.size(), parts_.bytes(), parts_.parts_left()}; }

  // A front that only looks for a place (OrderWalk) has no errands done, and writes nothing.
  bool MayBegin() const {
    return context_.errands != nullptr && !tried_ && !given_up_ && !done_ && has_room_;
  }

  // Has a file begun for the next element, unless that is under way.
  void Begin() {
    if (starting_ != nullptr) return;
    tried_ = true;
    starting_ = std::make_unique<KeptStart>(cache_, Behind(), stage_);
    started_behind_ = parts_.size();
    starting_->Start(context_.errands);
    TakeStarted();
  }

  // False while it is under way.
  bool TakeStarted() {
    if (!starting_->done()) return false;
    const std::unique_ptr<KeptStart> start = std::move(starting_);
    if (!start->status().ok()) {
      // Another writer's file may be there in the next pass.
      if (!absl::IsUnavailable(start->status()) || unwritten_ == Unwritten::kFails)
        GiveUp(start->status());
      return true;
    }
    // What this pass goes on with is no matter where another one's files have come.
    if (parts_.Take(std::move(start->found))) ShowParts();
    if (start->writer == nullptr || started_behind_ != parts_.size() || done_) return true;
    writer_ = std::move(start->writer);
    room_ = start->room;
    looked_at_ = 0;
    sound_ = UINT64_MAX;
    failure_ = absl::OkStatus();
    block_bytes_ = kFirstBlockBytes;
    return true;
  }

  // The file takes no more.
  void Fill() {
    full_ = true;
    Flush();
  }

  void Flush() {
    if (block_ == nullptr) return;
    if (writer_->bytes() - looked_at_ >= kLookBytes) {
      looked_at_ = writer_->bytes();
      block_->AskRoom(cache_, parts_.bytes(), looked_at_);
    }
    if (cache_->is_far()) block_->WaitOn(context_.errands, &context_.cancelled);
    in_flight_.push_back(std::move(block_));
    block_bytes_ = std::min(2 * block_bytes_, kBlockBytes);
    context_.errands->Push(in_flight_.back().get());
  }

  // Takes back what the workers have done.
  void GoOn() {
    if (starting_ != nullptr) TakeStarted();
    while (!in_flight_.empty() && in_flight_.front()->done()) {
      const KeptBlock& block = *in_flight_.front();
      const absl::Status& status = block.status();
      room_ = block.room.value_or(room_);
      if (status.ok() && writer_ != nullptr) writer_->Place(block.first, block.places);
      if (!status.ok() && block.first < sound_) {
        sound_ = block.first;
        failure_ = status;
        Fill();
      }
      in_flight_.pop_front();
    }
    if (ending_ != nullptr && ending_->done()) TakeEnding();
    if (writer_ == nullptr || ending_ != nullptr || !in_flight_.empty() || !(full_ || ended_))
      return;
    if (!failure_.ok() &&
        (!absl::IsResourceExhausted(failure_) || unwritten_ == Unwritten::kFails)) {
      GiveUp(failure_);
      return;
    }
    if (full_ && (unwritten_ == Unwritten::kFails ||
                  std::min(sound_, writer_->elements()) <= parts_.size() / kWorthwhile)) {
      GiveUp(!failure_.ok() ? failure_
                            : absl::ResourceExhaustedError(
                                  absl::StrCat("more elements than there is room for: ", room_,
                                               " bytes (", cache_->folder(), ")")));
      return;
    }
    ending_ =
        std::make_unique<KeptEnd>(writer_, cache_, sound_, !full_, &context_.cancelled, stage_);
    ending_->Start(context_.errands);
  }

  void TakeEnding() {
    const bool disk_was_full = !failure_.ok();
    const bool fell_short = full_;
    const std::unique_ptr<KeptEnd> ending = std::move(ending_);
    if (!ending->status().ok()) {
      GiveUp(ending->status());
      return;
    }
    writer_.reset();
    full_ = ended_ = false;
    if (unwritten_ == Unwritten::kFails && !ending->is_whole) {
      GiveUp(absl::ResourceExhaustedError(absl::StrCat("the disk is full: ", ending->num_elements,
                                                       " elements were written (", cache_->folder(),
                                                       ")")));
      return;
    }
    disk_is_full_ = !ending->is_whole && (disk_is_full_ || disk_was_full || !fell_short);
    patience_ = 0;
    has_room_ = false;
    if (!cache_->reads()) {
      done_ = true;
      Show(KeptState::kWhole, ending->num_elements, ending->bytes);
      return;
    }
    parts_.Take(std::move(ending->file));
    ShowParts();
  }

  // What is being written is of no use; what is there stays. A place that is full may have room
  // again, and is tried in vain after 1, 2, 4, … passes.
  void GiveUp(const absl::Status& status) {
    writer_.reset();
    full_ = ended_ = false;
    if (unwritten_ == Unwritten::kFails) status_ = status;
    disk_is_full_ = absl::IsResourceExhausted(status);
    if (disk_is_full_ && unwritten_ == Unwritten::kComputed) {
      patience_ = std::clamp<uint64_t>(2 * patience_, 1, kMaxPatience);
      passes_to_wait_ = patience_;
      has_room_ = false;
    } else {
      given_up_ = true;
    }
    ShowParts();
  }

  FrontContext& context_;
  const std::shared_ptr<const FileCache> cache_;
  const int stage_;
  const Unwritten unwritten_;

  KeptParts parts_;

  std::unique_ptr<KeptLook> looking_;
  std::unique_ptr<KeptStart> starting_;
  uint64_t started_behind_ = 0;  // of the parts' elements, those that were there then

  std::shared_ptr<ElementFileWriter> writer_;
  std::unique_ptr<KeptBlock> block_;  // is being filled
  uint64_t block_bytes_ = kFirstBlockBytes;
  std::deque<std::unique_ptr<KeptBlock>> in_flight_;
  std::unique_ptr<KeptEnd> ending_;
  uint64_t room_ = 0;       // bytes that the file may have
  uint64_t looked_at_ = 0;  // its bytes when that was found
  uint64_t sound_ =
      UINT64_MAX;         // of its elements, those in front of the first that could not be written
  absl::Status failure_;  // of that one
  bool disk_is_full_ = false;
  bool full_ = false;      // takes no more elements
  bool ended_ = false;     // has all of them
  bool done_ = false;      // has written, and keeps nothing any more
  bool tried_ = false;     // in this pass
  bool given_up_ = false;  // for good
  bool has_room_ = true;   // as far as is known when a pass begins
  uint64_t patience_ = 0;  // passes between two attempts that were in vain
  uint64_t passes_to_wait_ = 0;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<KeptElements> MakeFileKept(FrontContext& context,
                                           std::shared_ptr<const FileCache> cache,
                                           const ElementCells& cells, int stage,
                                           Unwritten unwritten) {
  return std::make_unique<FileKept>(context, std::move(cache), cells, stage, unwritten);
}

}  // namespace penstock
