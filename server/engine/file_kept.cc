#include "server/engine/file_kept.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/kept_gauge.h"
#include "server/engine/segment.h"

namespace penstock {
namespace {

constexpr size_t kBlocksInFlight = 16;
// The first block is small, so that little waits in it; each further one is twice as large up to the last of these.
constexpr uint64_t kFirstBlockBytes = uint64_t{16} << 10;
constexpr uint64_t kBlockBytes = uint64_t{1} << 20;
constexpr size_t kBlockElements = 4096;
// How often a folder's size is looked at, as others write there too.
constexpr uint64_t kLookBytes = uint64_t{64} << 20;
// An element's epoch and whether its record was found, in one number.
constexpr uint64_t kResolved = uint64_t{1} << 62;

// Elements that a worker writes.
struct Block {
  SegmentTask task;
  uint64_t first = 0;
  uint64_t bytes = 0;
  RecordList records;
  std::vector<ElementFile::Element> places;
  std::vector<const uint8_t*> data;
  absl::Status status;
};

// The end of a file, which a worker writes too.
struct Ending {
  SegmentTask task;
  absl::StatusOr<std::shared_ptr<const ElementFile>> file = absl::UnknownError("");
};

class FileKept final : public KeptElements {
 public:
  FileKept(FrontContext& context, std::shared_ptr<const FileCache> cache, const ElementCells& cells,
           int stage, Unwritten unwritten)
      : context_(context),
        cache_(std::move(cache)),
        cells_(cells),
        stage_(stage),
        unwritten_(unwritten) {}

  void BeginPass() override {
    tried_ = false;
    if (entry_ != nullptr || writer_ != nullptr) return;
    if (!cache_->reads()) return;
    absl::StatusOr<std::shared_ptr<const ElementFile>> file = cache_->Open();
    if (file.ok()) {
      Take(*std::move(file), /*trusted=*/false);
    } else {
      Show(given_up_ ? KeptState::kFailed : KeptState::kComputing);
    }
  }

  bool IsReady() override {
    GoOn();
    return ending_ == nullptr && in_flight_.size() < kBlocksInFlight;
  }

  bool Has(uint64_t ordinal) const override {
    return entry_ != nullptr && ordinal < entry_->size();
  }

  bool Deal(uint64_t ordinal, RecordList& out) override {
    const ElementFile::Element element = entry_->element(ordinal);
    const uint8_t* const data = entry_->data() + element.at;
    if (!trusted_ && !verified_[ordinal]) {
      if (!ElementHolds(data - kElementFrameBytes, data, element.length) ||
          !cells_.IsCell(data, element.length)) {
        Reject();
        return false;
      }
      verified_[ordinal] = true;
    }
    RecordRef& reference = out.emplace_back();
    reference.data = data;
    reference.offset = element.offset;
    reference.length = element.length;
    reference.file = cache_->first_file() + element.file;
    reference.epoch = element.epoch & (kResolved - 1);
    reference.resolved = (element.epoch & kResolved) != 0;
    reference.in_map = 1;
    if (KeptGauge* const gauge = Gauge()) gauge->Hit();
    return true;
  }

  bool Wants(uint64_t ordinal) const override {
    if (entry_ != nullptr || full_ || done_) return false;
    return writer_ != nullptr ? ordinal == writer_->elements() : ordinal == 0 && MayBegin();
  }

  void Keep(uint64_t ordinal, const RecordRef& element) override {
    if (entry_ != nullptr || full_ || done_) return;
    if (writer_ == nullptr && (ordinal != 0 || !MayBegin() || !Begin())) return;
    if (ordinal != writer_->elements()) return;
    if (!HasRoom(element.length)) {
      full_ = true;
      Flush();
      return;
    }
    context_.store.Share({&element, 1});
    if (block_ == nullptr) {
      block_ = std::make_unique<Block>();
      block_->first = ordinal;
    }
    ElementFile::Element place;
    place.offset = element.offset;
    place.epoch = element.epoch | (element.resolved ? kResolved : 0);
    place.length = element.length;
    place.file = element.file - cache_->first_file();
    block_->places.push_back(writer_->Add(place));
    block_->records.push_back(element);
    block_->data.push_back(element.data);
    block_->bytes += element.length;
    if (block_->bytes >= block_bytes_ || block_->records.size() == kBlockElements) Flush();
    if (KeptGauge* const gauge = Gauge())
      gauge->Set(KeptState::kFilling, writer_->elements(), writer_->bytes());
  }

  Pulled End(uint64_t length) override {
    // There is no element to begin with.
    if (length == 0 && entry_ == nullptr && writer_ == nullptr && !done_ && MayBegin()) Begin();
    if (writer_ != nullptr && !full_ && writer_->elements() == length) {
      Flush();
      ended_ = true;
    }
    GoOn();
    if (!status_.ok()) return Pulled::kFailed;
    return ending_ != nullptr || (writer_ != nullptr && (ended_ || full_)) ? Pulled::kBlocked
                                                                           : Pulled::kEnd;
  }

  std::optional<uint64_t> Count() const override {
    if (entry_ == nullptr || !entry_->whole()) return std::nullopt;
    return entry_->size();
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
  void Show(KeptState state, uint64_t elements = 0, uint64_t bytes = 0) const {
    if (KeptGauge* const gauge = Gauge()) gauge->Set(state, elements, bytes);
  }

  void Take(std::shared_ptr<const ElementFile> file, bool trusted) {
    entry_ = std::move(file);
    trusted_ = trusted;
    if (!trusted_) verified_.assign(entry_->size(), false);
    Show(entry_->whole() ? KeptState::kWhole
         : disk_is_full_ ? KeptState::kDiskFull
                         : KeptState::kFull,
         entry_->size(), entry_->file_bytes());
  }

  // Elements of it are still on their way, so that the map stays.
  void Reject() {
    cache_->Remove(*entry_);
    rejected_.push_back(std::move(entry_));
    entry_ = nullptr;
    Show(KeptState::kComputing);
  }

  // A front that only looks for a place (OrderWalk) has no gauges, and writes nothing.
  bool MayBegin() const { return context_.gauges != nullptr && !tried_ && !given_up_ && !done_; }

  bool Begin() {
    tried_ = true;
    absl::StatusOr<std::unique_ptr<ElementFileWriter>> writer = cache_->Write();
    if (!writer.ok()) {
      // Another writer's file may be there in the next pass.
      if (!absl::IsUnavailable(writer.status()) || unwritten_ == Unwritten::kFails)
        GiveUp(writer.status());
      return false;
    }
    // Whoever had the lock before may have finished in the meantime. What this pass goes on with is no matter then.
    if (cache_->reads() && cache_->Open().ok()) return false;
    writer_ = *std::move(writer);
    room_ = cache_->Room(0);
    looked_at_ = 0;
    sound_ = UINT64_MAX;
    return true;
  }

  bool HasRoom(uint32_t length) {
    if (writer_->bytes() - looked_at_ >= kLookBytes) {
      looked_at_ = writer_->bytes();
      room_ = cache_->Room(looked_at_);
    }
    return writer_->BytesWith(length) <= room_;
  }

  void Flush() {
    if (block_ == nullptr) return;
    Block* const block = block_.get();
    block->task.errand = [block, writer = writer_, &store = context_.store] {
      block->status = writer->Write(block->first, block->places, block->data);
      store.Release(block->records);
      block->records.clear();
    };
    in_flight_.push_back(std::move(block_));
    block_bytes_ = std::min(2 * block_bytes_, kBlockBytes);
    context_.segments.Push(&block->task);
  }

  // Takes back what the workers have done.
  void GoOn() {
    while (!in_flight_.empty() &&
           in_flight_.front()->task.done.load(std::memory_order_acquire)) {  // SYNC segment-done
      const Block& block = *in_flight_.front();
      if (!block.status.ok() && block.first < sound_) {
        sound_ = block.first;
        failure_ = block.status;
        full_ = true;
        Flush();
      }
      in_flight_.pop_front();
    }
    if (ending_ != nullptr && ending_->task.done.load(std::memory_order_acquire)) TakeEnding();
    if (writer_ == nullptr || ending_ != nullptr || !in_flight_.empty() || !(full_ || ended_))
      return;
    if (!failure_.ok()) {
      disk_is_full_ = absl::IsResourceExhausted(failure_);
      if (!disk_is_full_ || unwritten_ == Unwritten::kFails || sound_ == 0) {
        writer_.reset();
        GiveUp(failure_);
        return;
      }
    } else if (full_ && (writer_->elements() == 0 || unwritten_ == Unwritten::kFails)) {
      const absl::Status status = absl::ResourceExhaustedError(absl::StrCat(
          "more elements than there is room for: ", room_, " bytes (", cache_->folder(), ")"));
      writer_.reset();
      GiveUp(status);
      return;
    }
    ending_ = std::make_unique<Ending>();
    Ending* const ending = ending_.get();
    ending->task.errand = [ending, writer = writer_, cache = cache_, elements = sound_,
                           whole = !full_] {
      const absl::Status status = writer->Finish(elements, whole);
      if (!status.ok()) {
        ending->file = status;
      } else {
        ending->file = ElementFile::Map(writer->path());
      }
    };
    context_.segments.Push(&ending->task);
  }

  void TakeEnding() {
    const bool fell_short = full_;
    writer_.reset();
    full_ = ended_ = false;
    std::unique_ptr<Ending> ending = std::move(ending_);
    if (!ending->file.ok()) {
      GiveUp(ending->file.status());
      return;
    }
    std::shared_ptr<const ElementFile> file = *std::move(ending->file);
    if (unwritten_ == Unwritten::kFails && !file->whole()) {
      GiveUp(absl::ResourceExhaustedError(absl::StrCat(
          "the disk is full: ", file->size(), " elements were written (", cache_->folder(), ")")));
      return;
    }
    disk_is_full_ = disk_is_full_ || (!fell_short && !file->whole());
    if (!cache_->reads()) {
      done_ = true;
      Show(KeptState::kWhole, file->size(), file->file_bytes());
      return;
    }
    Take(std::move(file), /*trusted=*/true);
  }

  void GiveUp(const absl::Status& status) {
    given_up_ = true;
    Show(absl::IsResourceExhausted(status) ? KeptState::kDiskFull : KeptState::kFailed);
    if (unwritten_ == Unwritten::kFails) status_ = status;
  }

  FrontContext& context_;
  const std::shared_ptr<const FileCache> cache_;
  const ElementCells& cells_;
  const int stage_;
  const Unwritten unwritten_;

  std::shared_ptr<const ElementFile> entry_;
  bool trusted_ = false;        // this op has written it
  std::vector<bool> verified_;  // else, by ordinal
  std::vector<std::shared_ptr<const ElementFile>> rejected_;

  std::shared_ptr<ElementFileWriter> writer_;
  std::unique_ptr<Block> block_;  // is being filled
  uint64_t block_bytes_ = kFirstBlockBytes;
  std::deque<std::unique_ptr<Block>> in_flight_;
  std::unique_ptr<Ending> ending_;
  uint64_t room_ = 0;            // bytes that the file may have
  uint64_t looked_at_ = 0;       // its bytes when that was found
  uint64_t sound_ = UINT64_MAX;  // elements in front of the first that could not be written
  absl::Status failure_;         // of that one
  bool disk_is_full_ = false;
  bool full_ = false;      // takes no more elements
  bool ended_ = false;     // has all of them
  bool done_ = false;      // has written, and keeps nothing any more
  bool tried_ = false;     // in this pass
  bool given_up_ = false;  // for good
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
