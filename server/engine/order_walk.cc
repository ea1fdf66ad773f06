#include "server/engine/order_walk.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/row_shape.h"
#include "server/engine/front.h"
#include "server/engine/plan_impl.h"
#include "server/engine/segment.h"
#include "server/engine/unbatch_rows.h"
#include "server/io/tfrecord_reader.h"

namespace penstock {
namespace {

class OrderWalk {
 public:
  explicit OrderWalk(std::shared_ptr<const PlanImpl> plan)
      : plan_(std::move(plan)),
        files_(plan_->files(), plan_->manifest()),
        reader_(store_),
        clock_(static_cast<int>(plan_->stage_names().size())),
        segment_runner_(store_, files_, clock_),
        evaluator_(files_, clock_),
        front_(*plan_, files_, store_, reads_, segments_, damage_, cancelled_) {
    front_.set_clock(&clock_);
  }
  ~OrderWalk() {
    // What was asked for must be done before those who asked are gone.
    while (WorkOnce()) {
    }
  }

  absl::Status GoTo(uint64_t step) {
    uint64_t skipped = 0;
    const Pulled result = Finish([&] { return front_.Skip(step, &skipped); });
    if (result == Pulled::kFailed) return front_.status();
    next_ = skipped;
    if (result == Pulled::kEnd) return End();
    return absl::OkStatus();
  }

  // The next step's references; false at the end of the stream.
  absl::StatusOr<bool> Next() {
    if (!step_.records.empty()) front_.Release(&step_);
    const Pulled result = Finish([&] { return front_.Assemble(&step_); });
    if (result == Pulled::kFailed) return front_.status();
    if (result == Pulled::kEnd) return false;
    ++next_;
    return true;
  }

  absl::Status End() const {
    return absl::OutOfRangeError(absl::StrCat("the stream has only ", next_, " steps"));
  }

  uint32_t rows() const {
    size_t rows = step_.info.rows;
    for (uint32_t i = 0; i < plan_->width() && !plan_->program().batched(); ++i) {
      if (const Batch* const batch = FindBatch(element(0)[i]))
        rows = std::max(rows, batch->rows.size());
    }
    return rows;
  }
  // Whether the step is a batch that a later stage has taken as an element, or several of them side by side.
  bool is_whole_batch() const {
    const RecordRef* const end = element(0) + plan_->width();
    return !plan_->program().batched() &&
           std::any_of(element(0), end, [this](const RecordRef& r) { return FindBatch(r); });
  }
  // The records that fill a row.
  void FindPlaces(uint32_t row, std::vector<RecordRef>* places) const {
    places->clear();
    if (!is_whole_batch()) return Locate(plan_->work(), {element(row), plan_->width()}, places);
    for (uint32_t i = 0; i < plan_->width(); ++i) {
      const Batch* const batch = FindBatch(element(0)[i]);
      if (batch == nullptr) {
        Locate(plan_->work(), {&element(0)[i], 1}, places);
      } else if (row < batch->rows.size()) {
        for (RecordRef place : batch->rows[row]) {
          place.epoch += element(0)[i].epoch - batch->epoch;
          places->push_back(place);
        }
      }
    }
  }
  const RecordRef* element(uint32_t row) const {
    return &step_.records[size_t{row} * plan_->width()];
  }
  // The columns of one element, valid until the next call.
  absl::Status Evaluate(uint32_t row, DrawLog* log, Columns* columns) {
    evaluator_.Reset();
    evaluator_.set_draw_log(log);
    columns->assign(plan_->work().output.size(), Column{});
    const uint32_t width = plan_->width();
    const RowStatus status =
        evaluator_.Evaluate(plan_->work(), {element(row), 1, width}, absl::MakeSpan(*columns));
    if (status.ok()) return absl::OkStatus();
    return WithElementAddress(
        absl::Status(status.status.code(),
                     absl::StrCat("stage ", plan_->stage_names()[evaluator_.failed_stage()], ": ",
                                  status.status.message())),
        {element(row), width}, plan_->work(), files_);
  }
  const PlanImpl& plan() const { return *plan_; }
  FileTable& files() { return files_; }

 private:
  struct Batch {
    std::vector<std::vector<RecordRef>> rows;  // the records of each
    uint64_t epoch = 0;                        // of the element, before a later stage repeats it
  };

  // Adds the records themselves, of those references that belong to a file.
  void Locate(const WorkNode& work, absl::Span<const RecordRef> references,
              std::vector<RecordRef>* places) const {
    for (const RecordRef& reference : references) {
      if (reference.file >= plan_->manifest().size() ||
          plan_->manifest()[reference.file].path.empty())
        continue;
      places->push_back(work.SourceOf(reference.file)->loader->Locate(reference));
      places->back().epoch = reference.epoch;
    }
  }

  const Batch* FindBatch(const RecordRef& reference) const {
    const auto found = batches_.find(reference.data);
    return found == batches_.end() ? nullptr : &found->second;
  }

  void RunSegment(SegmentTask* task) {
    Batch batch;
    if (task->errand == nullptr && task->segment->batch != nullptr) {
      const uint32_t width = task->segment->width;
      for (size_t first = 0; first < task->records.size(); first += width) {
        Locate(*task->segment->work, absl::MakeConstSpan(task->records).subspan(first, width),
               &batch.rows.emplace_back());
      }
    }
    segment_runner_.Run(task);
    // Where an older batch was, there is none any more.
    for (const RecordRef& element : task->elements) batches_.erase(element.data);
    if (batch.rows.empty() || task->elements.empty()) return;
    batch.epoch = task->elements.front().epoch;
    batches_.emplace(task->elements.front().data, std::move(batch));
  }

  bool WorkOnce() {
    if (SegmentTask* task = segments_.Pop()) {
      RunSegment(task);
      return true;
    }
    ReadRequest* request = reads_.Pop();
    if (request == nullptr) return false;
    reader_.Run(request);
    return true;
  }
  template <typename Step>
  Pulled Finish(const Step& step) {
    while (true) {
      const Pulled result = step();
      if (result != Pulled::kBlocked || !WorkOnce()) return result;
    }
  }

  const std::shared_ptr<const PlanImpl> plan_;
  FileTable files_;
  RecordStore store_;
  ReadQueue reads_;
  SegmentQueue segments_;
  DamageLog damage_;
  const std::atomic<bool> cancelled_{false};
  ChunkReader reader_;
  StageClock clock_;
  SegmentRunner segment_runner_;
  RowEvaluator evaluator_;
  Front front_;
  Step step_;
  uint64_t next_ = 0;
  std::unordered_map<const uint8_t*, Batch> batches_;  // by the cell of the element that each is
};

// Goes to a row that must be there.
absl::Status GoToRow(OrderWalk& walk, uint64_t step, uint32_t row) {
  if (absl::Status status = walk.GoTo(step); !status.ok()) return status;
  absl::StatusOr<bool> more = walk.Next();
  if (!more.ok()) return more.status();
  if (!*more) return walk.End();
  if (row >= walk.rows()) {
    return absl::OutOfRangeError(
        absl::StrCat("row ", row, ": step ", step, " has ", walk.rows(), " rows"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RecordPlace>> PlacesOf(OrderWalk& walk, uint32_t row) {
  std::vector<RecordPlace> places;
  std::vector<RecordRef> records;
  walk.FindPlaces(row, &records);
  for (const RecordRef& record : records) {
    RecordPlace place;
    const FileEntry& entry = walk.plan().manifest()[record.file];
    place.file = entry.path;
    place.offset = record.offset;
    place.epoch = record.epoch;
    if (entry.plain_tfrecord) {
      absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = walk.files().Open(record.file);
      if (!file.ok()) return file.status();
      place.record = RecordOrdinal(**file, record.offset);
      place.record_known = true;
    }
    places.push_back(std::move(place));
  }
  return places;
}

// Of an element that is a batch of so many rows, one of these; nothing where it is something else that was made of a batch.
void TakeRow(uint32_t row, uint32_t rows, Arena& arena, Signature* features, Columns* columns) {
  const std::unique_ptr<SplitOp> op = RowsOf(*features);
  if (op == nullptr) return;
  uint32_t count = 0;
  Split split;
  split.counts = {&count, 1};
  Columns out(columns->size());
  if (!op->Run(1, *columns, &split, absl::MakeSpan(out), arena).ok() || count != rows) return;
  *features = op->output();
  *columns = std::move(out);
  for (size_t i = 0; i < columns->size(); ++i) {
    Column& column = (*columns)[i];
    column.rows += row;
    if (column.dims != nullptr) column.dims += row * (*features)[i].type.shape.size();
  }
}

}  // namespace

absl::StatusOr<std::vector<RecordPlace>> FindRecords(std::shared_ptr<const Plan> plan,
                                                     uint64_t step, uint32_t row) {
  OrderWalk walk(std::static_pointer_cast<const PlanImpl>(std::move(plan)));
  if (absl::Status status = GoToRow(walk, step, row); !status.ok()) return status;
  return PlacesOf(walk, row);
}

absl::StatusOr<ShownRow> ShowRow(std::shared_ptr<const Plan> plan, uint64_t step, uint32_t row) {
  OrderWalk walk(std::static_pointer_cast<const PlanImpl>(std::move(plan)));
  if (absl::Status status = GoToRow(walk, step, row); !status.ok()) return status;
  ShownRow shown;
  absl::StatusOr<std::vector<RecordPlace>> places = PlacesOf(walk, row);
  if (!places.ok()) return places.status();
  shown.records = *std::move(places);
  Columns columns;
  Signature features = walk.plan().work().output;
  const bool is_whole_batch = walk.is_whole_batch();
  absl::Status status = walk.Evaluate(is_whole_batch ? 0 : row, &shown.log, &columns);
  if (!status.ok()) return status;
  Arena arena;
  if (is_whole_batch) TakeRow(row, walk.rows(), arena, &features, &columns);
  uint64_t bytes = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    Feature feature = features[i];
    const size_t size = NumBytes(feature.type).value_or(columns[i].row_size(0));
    bytes += size;
    if (bytes > kShownBytesMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a row larger than what is shown: more than ", kShownBytesMax, " bytes"));
    }
    feature.type.shape = RowDims(feature.type, columns[i], 0);
    shown.features.push_back(std::move(feature));
    shown.values.emplace_back(reinterpret_cast<const char*>(columns[i].row(0)), size);
  }
  return shown;
}

absl::StatusOr<RowPlace> FindRow(std::shared_ptr<const Plan> plan, const std::string& file,
                                 uint64_t offset, uint64_t first_step, uint64_t steps_max) {
  OrderWalk walk(std::static_pointer_cast<const PlanImpl>(std::move(plan)));
  const Manifest& manifest = walk.plan().manifest();
  std::vector<bool> wanted(manifest.size());
  bool any = false;
  for (size_t i = 0; i < manifest.size(); ++i) {
    wanted[i] = manifest[i].path == file || absl::EndsWith(manifest[i].path, "/" + file);
    any = any || wanted[i];
  }
  if (!any)
    return absl::NotFoundError(absl::StrCat("the pipeline reads no file of the name ", file));
  if (absl::Status status = walk.GoTo(first_step); !status.ok()) return status;
  std::vector<RecordRef> records;
  for (uint64_t step = first_step; step - first_step < steps_max; ++step) {
    absl::StatusOr<bool> more = walk.Next();
    if (!more.ok()) return more.status();
    if (!*more) break;
    for (uint32_t row = 0; row < walk.rows(); ++row) {
      walk.FindPlaces(row, &records);
      for (const RecordRef& record : records) {
        if (record.offset == offset && wanted[record.file])
          return RowPlace{step, row, record.epoch};
      }
    }
  }
  return absl::NotFoundError(absl::StrCat("no row of the steps looked at, from ", first_step,
                                          " on, comes from offset ", offset, " of ", file,
                                          "; is it where a record begins?"));
}

}  // namespace penstock
