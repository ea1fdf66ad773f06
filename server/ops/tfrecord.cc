#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/op_registry.h"
#include "server/engine/record_loader.h"

namespace penstock {
namespace {

constexpr int64_t kMaxCycleLength = 1024;

// One file that is being read: the records that are at hand, and one read that is on its way.
class FileStream {
 public:
  FileStream(FrontContext& context, uint32_t file) : context_(context) {
    for (ReadRequest& request : requests_) {
      request.files = &context.files;
      request.file = file;
    }
    Request();
  }
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  // The next record of the file. kEnd behind the last one, sticky.
  Pulled Next(RecordRef* record) {
    while (next_ == at_hand().records.size()) {
      const Pulled result = NextRead();
      if (result != Pulled::kSome) return result;
    }
    *record = at_hand().records[next_++];
    return Pulled::kSome;
  }

  const absl::Status& status() const { return at_hand().error; }

  // Gives back what was read and not taken. False while a read is under way: then call again later.
  bool Close() {
    if (requested_ && !ahead().done.load(std::memory_order_acquire))
      return false;  // SYNC chunk-ready
    if (requested_) context_.store.Release(ahead().records);
    requested_ = false;
    context_.store.Release(absl::MakeConstSpan(at_hand().records).subspan(next_));
    next_ = at_hand().records.size();
    return true;
  }

 private:
  ReadRequest& at_hand() { return requests_[current_]; }
  const ReadRequest& at_hand() const { return requests_[current_]; }
  ReadRequest& ahead() { return requests_[1 - current_]; }

  // Asks for what follows the records at hand.
  void Request() {
    ahead().offset = at_hand().next_offset;
    ahead().expect_late = at_hand().next_is_late;
    ahead().done.store(false, std::memory_order_relaxed);
    requested_ = true;
    context_.reads.Push(&ahead());
  }

  Pulled NextRead() {
    if (!at_hand().error.ok()) return Pulled::kFailed;
    if (at_hand().end_of_file) return Pulled::kEnd;
    if (!ahead().done.load(std::memory_order_acquire)) return Pulled::kBlocked;  // SYNC chunk-ready
    requested_ = false;
    current_ = 1 - current_;
    next_ = 0;
    if (at_hand().error.ok() && !at_hand().end_of_file) Request();
    return Pulled::kSome;
  }

  FrontContext& context_;
  ReadRequest requests_[2];
  int current_ = 0;  // the request whose records are at hand; the first one is empty
  size_t next_ = 0;  // the first of them that is not taken
  bool requested_ = false;
};

// The records of the files, `cycle_length` files in turns; the order is that of tf.data's
// interleave. Its position is the number of records taken in this pass.
class TfrecordOp final : public OrderOp {
 public:
  TfrecordOp(FrontContext& context, FileRange files, const std::string& stage,
             uint32_t cycle_length, uint32_t block_length)
      : context_(context),
        files_(files),
        stage_(stage),
        block_length_(block_length),
        cycle_(cycle_length) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (resume_at_ > 0) {
      uint64_t skipped = 0;
      const uint64_t target = std::exchange(resume_at_, 0);
      const Pulled result = Skip(target, &skipped);
      resume_at_ = target - skipped;
      if (result != Pulled::kSome) return result;
    }
    const uint64_t before = *pulled;
    const Pulled result = Take(count, out, pulled);
    taken_ += *pulled - before;
    return result;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return SkipByPulling(*this, context_.store, count, skipped);
  }

  void Save(Position& position) const override { position.Add(taken_ + resume_at_); }

  absl::Status Restore(Position& position) override {
    resume_at_ = position.Take();
    return absl::OkStatus();
  }

  std::optional<uint64_t> Count() override { return std::nullopt; }

  uint32_t width() const override { return 1; }

  void Advance() {
    position_ = position_ + 1 == cycle_.size() ? 0 : position_ + 1;
    taken_of_block_ = 0;
  }

  bool OpenNext(std::unique_ptr<FileStream>* stream) {
    if (next_file_ == files_.count) return false;
    *stream = upcoming_ ? std::move(upcoming_) : Open(next_file_);
    ++next_file_;
    ++num_open_;
    // The file after it is read ahead, so that its turn does not begin with a wait.
    if (next_file_ < files_.count) upcoming_ = Open(next_file_);
    return true;
  }

  std::unique_ptr<FileStream> Open(uint32_t file) {
    return std::make_unique<FileStream>(context_, files_.first + file);
  }

  void Retire(std::unique_ptr<FileStream> stream) {
    std::erase_if(retired_, [](const std::unique_ptr<FileStream>& old) { return old->Close(); });
    if (!stream->Close()) retired_.push_back(std::move(stream));
    stream.reset();
  }

  FrontContext& context_;
  const FileRange files_;
  const std::string stage_;
  const uint32_t block_length_;
  std::vector<std::unique_ptr<FileStream>> cycle_;
  std::unique_ptr<FileStream> upcoming_;
  std::vector<std::unique_ptr<FileStream>> retired_;  // wait for their last read
  uint32_t next_file_ = 0;
  size_t num_open_ = 0;
  size_t position_ = 0;  // in cycle_
  uint32_t taken_of_block_ = 0;
  uint64_t taken_ = 0;      // in this pass
  uint64_t resume_at_ = 0;  // records to leave out before the next one
  absl::Status status_;
};

const OpRegistration<v1::Tfrecord> kTfrecord(
    "tfrecord",
    [](const v1::Tfrecord& options, PlanBuilder& plan) -> absl::Status {
      if (options.files().empty())
        return absl::InvalidArgumentError("files: expected at least one path or glob, found none");
      const int64_t cycle_length = options.has_cycle_length() ? options.cycle_length() : 1;
      const int64_t block_length = options.has_block_length() ? options.block_length() : 1;
      if (cycle_length < 1 || cycle_length > kMaxCycleLength) {
        return absl::InvalidArgumentError(absl::StrCat("cycle_length: expected 1 to ",
                                                       kMaxCycleLength, ", found ", cycle_length));
      }
      if (block_length < 1 || block_length > INT32_MAX) {
        return absl::InvalidArgumentError(
            absl::StrCat("block_length: expected at least 1, found ", block_length));
      }
      Manifest manifest;
      for (const std::string& pattern : options.files()) {
        absl::StatusOr<std::vector<std::string>> paths = plan.files().Glob(pattern);
        if (!paths.ok()) return paths.status();
        for (const std::string& path : *paths) {
          absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = plan.files().Open(path);
          if (!file.ok()) return file.status();
          manifest.push_back({path, (*file)->size()});
        }
      }
      std::sort(manifest.begin(), manifest.end(),
                [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
      if (std::all_of(manifest.begin(), manifest.end(),
                      [](const FileEntry& file) { return file.size_bytes == 0; })) {
        return absl::InvalidArgumentError(absl::StrCat(
            "all ", manifest.size(), " files are empty, such as ", manifest.front().path));
      }
      const FileRange files = plan.AddFiles(std::move(manifest));
      plan.SetSource(std::make_unique<RecordLoader>(), files,
                     [files, stage = plan.stage(), cycle_length, block_length](
                         FrontContext& context, OrderInputs) {
                       return std::make_unique<TfrecordOp>(context, files, stage, cycle_length,
                                                           block_length);
                     });
      return absl::OkStatus();
    },
    OpPlace::kSource);

}  // namespace
}  // namespace penstock
