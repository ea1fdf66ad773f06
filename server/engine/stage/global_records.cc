#include "server/engine/stage/global_records.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/record_access.h"
#include "server/engine/compute/row_evaluator.h"
#include "server/engine/order/file_pull.h"
#include "server/engine/read/record_loader.h"
#include "server/engine/tasks/errands.h"

namespace penstock {
namespace {

// Records of consecutive numbers, from `begin` to `end`.
struct RecordRun {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Tells the files' system what will be read, for which it opens the files.
class Announcement final : public SlowErrand {
 public:
  Announcement(std::shared_ptr<const GlobalRecords> records, FileTable& files,
               std::vector<RecordRun> runs, int stage)
      : SlowErrand(CallKind::kRead, stage),
        records_(std::move(records)),
        files_(files),
        runs_(std::move(runs)) {}

 private:
  absl::Status Do() override {
    for (const RecordRun& run : runs_) records_->Announce(run.begin, run.end, files_);
    return absl::OkStatus();
  }

  const std::shared_ptr<const GlobalRecords> records_;
  FileTable& files_;
  const std::vector<RecordRun> runs_;
};

// Its position: the pass, and the number of records taken of it.
class GlobalOrderOp final : public OrderOp {
 public:
  GlobalOrderOp(FrontContext& context, std::shared_ptr<GlobalRecords> records, std::string stage,
                int stage_index, bool reshuffle)
      : context_(context),
        records_(std::move(records)),
        stage_(std::move(stage)),
        stage_index_(stage_index),
        reshuffle_(reshuffle) {
    if (records_->reach().read_first) pull_.emplace(context, records_->files(), stage_index);
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (!Open()) return status_.ok() ? Pulled::kBlocked : Pulled::kFailed;
    if (!BeginPass()) return Pulled::kFailed;
    if (pull_ && !pull_->IsOver()) return Pulled::kBlocked;
    // The numbers of nested passes are longer.
    const uint64_t folded = epoch_ >> 32 == 0 ? epoch_ : MixPath(epoch_, 0);
    const auto order = static_cast<uint32_t>(reshuffle_ ? folded : 0);
    if (records_->reach().block_size != 0) Announce(order, count - *pulled);
    for (; *pulled < count; ++*pulled) {
      if (next_ >= records_->size()) return Pulled::kEnd;
      out.push_back({nullptr, next_++, order, records_->first_file(), 0});
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    if (!Open()) return status_.ok() ? Pulled::kBlocked : Pulled::kFailed;
    const uint64_t left = records_->size() - std::min(next_, records_->size());
    const uint64_t left_out = std::min(count - *skipped, left);
    next_ += left_out;
    *skipped += left_out;
    return *skipped == count ? Pulled::kSome : Pulled::kEnd;
  }

  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
    next_group_ = 0;
  }
  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(next_);
  }
  absl::Status Restore(Position& position) override {
    epoch_ = position.Take();
    next_ = position.Take();
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override {
    return Open() ? std::optional(records_->size()) : std::nullopt;
  }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return status_; }

 private:
  // False also while the indices are not there yet.
  bool Open() {
    if (open_ || !status_.ok()) return open_;
    absl::Status status;
    open_ = records_->Open(context_.files, context_.errands, stage_index_, &status);
    if (!status.ok())
      status_ = absl::Status(status.code(), absl::StrCat("stage ", stage_, ": ", status.message()));
    return open_;
  }

  // A pass leaves out all that is damaged, which is known before its first record. False when it is
  // too much.
  bool BeginPass() {
    if (begun_ == epoch_) return status_.ok();
    begun_ = epoch_;
    const std::vector<std::pair<uint32_t, Damage>> damaged = records_->damage();
    const uint64_t pass = context_.PassOf(epoch_);
    for (const auto& [file, damage] : damaged) context_.damage.Add({file, pass, damage, ""});
    const absl::Status status =
        records_->limits().Check(damaged.size(), records_->size(), /*at_end=*/true);
    if (!status.ok())
      status_ = absl::Status(status.code(), absl::StrCat("stage ", stage_, ": ", status.message()));
    return status_.ok();
  }

  // The blocks of the groups that the next `count` places lie in, and of one more, are read
  // meanwhile. What comes while others are announced waits for that.
  void Announce(uint32_t order, uint64_t count) {
    if (next_ >= records_->size()) return;
    if (announcement_ != nullptr && !announcement_->done()) return;
    if (!order_ || announced_order_ != order) {
      order_.emplace(*records_, order);
      announced_order_ = order;
      next_group_ = 0;
    }
    const BlockPermutation& blocks = *order_->blocks();
    const uint64_t last_place = std::min(next_ + count, records_->size()) - 1;
    const uint64_t end = std::min(blocks.GroupOf(last_place) + 2, blocks.num_groups());
    std::vector<RecordRun> runs;
    // What was skipped is not read.
    for (uint64_t group = std::max(next_group_, blocks.GroupOf(next_)); group < end; ++group) {
      const uint64_t first = blocks.FirstBlock(group);
      for (uint64_t block = first; block < first + blocks.NumBlocks(group); ++block)
        runs.push_back({blocks.BlockBegin(block), blocks.BlockEnd(block)});
      next_group_ = group + 1;
    }
    if (runs.empty()) return;
    announcement_ =
        std::make_unique<Announcement>(records_, context_.files, std::move(runs), stage_index_);
    announcement_->Start(context_.errands);
  }

  FrontContext& context_;
  const std::shared_ptr<GlobalRecords> records_;
  const std::string stage_;
  const int stage_index_;
  const bool reshuffle_;
  std::optional<FilePull> pull_;
  std::optional<GlobalRecords::Order> order_;  // of announced_order_
  uint32_t announced_order_ = 0;
  uint64_t next_group_ = 0;  // the first that was not announced
  std::unique_ptr<Announcement> announcement_;
  bool open_ = false;
  std::optional<uint64_t> begun_;  // the pass whose damage was told
  uint64_t epoch_ = 0;
  uint64_t next_ = 0;
  absl::Status status_;
};

class GlobalLoaderImpl final : public ColumnLoader {
 public:
  explicit GlobalLoaderImpl(std::shared_ptr<const GlobalRecords> records)
      : records_(std::move(records)), output_(RecordSignature(records_->gives_path())) {}

  const Signature& output() const override { return output_; }

  bool resolves() const override { return true; }

  // A place in the index, as one in a file, is mostly on a page whose address no core knows by
  // heart, and a prefetch waits until that address is found. So places are asked for while the next
  // ones are computed; and the records' bytes by a loop that does nothing else (FetchRecords), in
  // which several addresses are looked up at a time.
  void Resolve(RecordRef* refs, uint32_t rows, uint32_t stride, FileTable& files,
               Arena& arena) const override {
    auto* own = arena.AllocateArray<RecordRef*>(rows);
    auto* places = arena.AllocateArray<GlobalRecords::Place>(rows);
    std::optional<GlobalRecords::Order> order;
    uint32_t epoch = 0;
    uint32_t count = 0;
    for (uint32_t row = 0; row < rows; ++row) {
      RecordRef& reference = refs[size_t{row} * stride];
      if (reference.resolved || reference.file != records_->first_file()) continue;
      if (!order || reference.length != epoch) order.emplace(*records_, epoch = reference.length);
      places[count] = records_->PlaceOf((*order)(reference.offset));
      records_->Prefetch(places[count]);
      own[count++] = &reference;
    }
    const RecordShape& shape = records_->access().shape();
    const uint64_t around = shape.header_bytes + shape.footer_bytes;
    for (uint32_t i = 0; i < count; ++i) {
      RecordRef& record = *own[i];
      records_->Find(places[i], &record);
      record.resolved = 1;
      if (record.length > kLateRecordBytes) continue;
      const MappedFile* const map = records_->Map(record.file, files);
      if (map == nullptr || record.offset + around + record.length > map->size()) continue;
      record.data = map->bytes() + record.offset + shape.header_bytes;
      record.in_map = 1;
    }
  }

  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    uint32_t resolved = 0;
    while (resolved < rows.rows && rows[resolved].resolved) ++resolved;
    if (resolved == rows.rows) return LoadResolved(rows, files, out, arena);
    auto* own = arena.AllocateArray<RecordRef>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row) own[row] = rows[row];
    Resolve(own, rows.rows, 1, files, arena);
    FetchRecords({own, rows.rows});
    return LoadResolved({own, rows.rows, 1}, files, out, arena);
  }

  std::string ContentKey() const override {
    if (records_->gives_path()) return "";
    return RecordLoader::ContentKeyOf(Compression::kNone, records_->format());
  }

  RecordRef Locate(const RecordRef& reference) const override {
    if (reference.resolved) return reference;
    GlobalRecords::Order order(*records_, reference.length);
    return records_->Find(records_->PlaceOf(order(reference.offset)));
  }

 private:
  RowStatus LoadResolved(RowReferences rows, FileTable& files, absl::Span<Column> out,
                         Arena& arena) const {
    if (out.size() > 1) LoadPaths(rows, files, &out[1], arena);
    const RecordAccess& access = records_->access();
    RowStatus status = LoadRecords(rows, files, &access, &out[0], arena);
    if (!status.ok() || access.shape().is_framed || MapsHold(rows, files, out[0])) return status;
    // The files themselves tell what they still have.
    auto* read = arena.AllocateArray<RecordRef>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      read[row] = rows[row];
      if (read[row].in_map) read[row].data = nullptr;
      read[row].in_map = 0;
    }
    return LoadRecords({read, rows.rows, 1}, files, &access, &out[0], arena);
  }

  // Whether what was copied out of maps is what the files had. Where a file was cut, zeros come in
  // the place of its bytes, up to the end of a record; of records without checksums, nothing else
  // tells.
  bool MapsHold(RowReferences rows, FileTable& files, const Column& copies) const {
    static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const RecordShape& shape = records_->access().shape();
    uint32_t whole = UINT32_MAX;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const RecordRef& record = rows[row];
      if (!record.in_map || record.file == whole) continue;
      const MappedFile* const map = records_->Map(record.file, files);
      if (map == nullptr || map->torn()) return false;
      const RowBytes& copy = copies.rows[row];
      if (copy.size > 0 && copy.data[copy.size - 1] != 0) continue;
      // A page that the file has lost is seen at a look; zeros come out of its last page alone.
      const uint64_t last_page = (map->size() - 1) / page * page;
      static_cast<void>(*static_cast<const volatile uint8_t*>(map->bytes() + last_page));
      if (map->torn()) return false;
      const uint64_t end = record.offset + shape.header_bytes + record.length + shape.footer_bytes;
      if (end <= last_page) continue;
      const auto file = files.Open(record.file);
      if (!file.ok() || (*file)->SizeNow() < map->size()) return false;
      whole = record.file;
    }
    return true;
  }

  const std::shared_ptr<const GlobalRecords> records_;
  const Signature output_;
};

}  // namespace

bool GlobalRecords::Open(FileTable& files, Errands* errands, int stage, absl::Status* status) {
  {
    std::lock_guard<std::mutex> lock(opening_);
    if (!indices_.empty()) return true;
  }
  std::vector<std::shared_ptr<const RecordIndex>> indices;
  std::vector<uint64_t> ends;
  uint64_t end = 0;
  bool waits = false;
  for (uint32_t i = 0; i < files_.files.count; ++i) {
    std::optional<FileTable::IndexOrError> index =
        files.AskIndex(files_.files.first + i, files_.on_damage, errands, stage);
    if (!index) {
      waits = true;
      continue;
    }
    if (!index->ok()) {
      // The first file's error is the one that counts, whichever is found first.
      if (!waits) *status = index->status();
      return false;
    }
    end += (**index)->size();
    ends.push_back(end);
    indices.push_back(**std::move(index));
  }
  // All of them have been asked for.
  if (waits) return false;
  std::lock_guard<std::mutex> lock(opening_);
  // Another stream of the plan may have been first, and reads them already.
  if (!indices_.empty()) return true;
  maps_ = std::vector<Mapping>(indices.size());
  ends_ = std::move(ends);
  indices_ = std::move(indices);
  return true;
}

std::vector<std::pair<uint32_t, Damage>> GlobalRecords::damage() const {
  std::vector<std::pair<uint32_t, Damage>> found;
  for (uint32_t i = 0; i < indices_.size(); ++i) {
    for (const Damage& damage : indices_[i]->damage())
      found.emplace_back(files_.files.first + i, damage);
  }
  return found;
}

namespace {

// The one that this thread asked for last, if it is the same: a worker asks again for each block
// of rows, and making one takes as long as finding ten records.
const Permutation& PermutationOf(uint64_t size, uint64_t key, uint64_t epoch) {
  struct Last {
    uint64_t key;
    uint64_t epoch;
    Permutation permutation;
  };
  static constinit thread_local std::optional<Last> last;
  if (!last || last->permutation.size() != size || last->key != key || last->epoch != epoch)
    last.emplace(Last{key, epoch, Permutation(size, key, epoch)});
  return last->permutation;
}

}  // namespace

GlobalRecords::Order::Order(const GlobalRecords& records, uint64_t epoch)
    : all_(PermutationOf(records.size(), records.key_, epoch)) {
  const GlobalReach& reach = records.reach_;
  if (reach.block_size != 0)
    blocks_.emplace(records.size(), reach.block_size, reach.group_blocks, records.key_, epoch);
}

void GlobalRecords::Announce(uint64_t begin, uint64_t end, FileTable& files) const {
  while (begin < end) {
    const Place first = PlaceOf(begin);
    const uint64_t in_file = std::min(end, ends_[first.file]) - begin;
    const Place last{first.in_file + in_file - 1, first.file};
    const RecordRef record = Find(last);
    // What cannot be opened is told of when it is read.
    const absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(record.file);
    if (file.ok()) {
      const uint64_t offset = indices_[first.file]->offset(first.in_file);
      (*file)->WillNeed(offset, indices_[last.file]->end(last.in_file) - offset);
    }
    begin += in_file;
  }
}

GlobalRecords::Place GlobalRecords::PlaceOf(uint64_t ordinal) const {
  // The first file that ends behind it. Without branches, as any guess would be wrong half of the
  // time: by a mask, for compilers make one of `?:` here.
  const uint64_t* end = ends_.data();
  for (size_t left = ends_.size(); left > 1;) {
    const size_t half = left / 2;
    end += half & -static_cast<size_t>(end[half - 1] <= ordinal);
    left -= half;
  }
  const auto file = static_cast<uint32_t>(end - ends_.data());
  const uint64_t in_file = ordinal - (file == 0 ? 0 : end[-1]);
  return {in_file, file};
}

void GlobalRecords::MakeMap(uint32_t file, FileTable& files, Mapping& mapping) const {
  mapping.once.Call([&] { mapping.map = files.Map(file); });
}

OrderFactory GlobalOrder(std::shared_ptr<GlobalRecords> records, const std::string& stage,
                         int stage_index, bool reshuffle) {
  return [records, stage, stage_index, reshuffle](FrontContext& context, OrderInputs) {
    return std::make_unique<GlobalOrderOp>(context, records, stage, stage_index, reshuffle);
  };
}

std::unique_ptr<ColumnLoader> GlobalLoader(std::shared_ptr<const GlobalRecords> records) {
  return std::make_unique<GlobalLoaderImpl>(std::move(records));
}

}  // namespace penstock
