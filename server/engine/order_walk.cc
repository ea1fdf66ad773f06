#include "server/engine/order_walk.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/row_shape.h"
#include "server/engine/front.h"
#include "server/engine/plan_impl.h"
#include "server/engine/segment.h"
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

  uint32_t rows() const { return step_.info.rows; }
  const RecordRef& reference(uint32_t row, uint32_t i) const {
    return step_.records[size_t{row} * plan_->width() + i];
  }
  // The record itself, or nullopt where the reference belongs to no file.
  std::optional<RecordRef> Locate(const RecordRef& reference) const {
    if (reference.file >= plan_->manifest().size() ||
        plan_->manifest()[reference.file].path.empty())
      return std::nullopt;
    RecordRef place = plan_->work().SourceOf(reference.file)->loader->Locate(reference);
    place.epoch = reference.epoch;
    return place;
  }
  const RecordRef* element(uint32_t row) const { return &reference(row, 0); }
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
  bool WorkOnce() {
    if (SegmentTask* task = segments_.Pop()) {
      segment_runner_.Run(task);
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
  for (uint32_t i = 0; i < walk.plan().width(); ++i) {
    const std::optional<RecordRef> record = walk.Locate(walk.reference(row, i));
    if (!record) continue;
    RecordPlace place;
    const FileEntry& entry = walk.plan().manifest()[record->file];
    place.file = entry.path;
    place.offset = record->offset;
    place.epoch = record->epoch;
    if (entry.plain_tfrecord) {
      absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = walk.files().Open(record->file);
      if (!file.ok()) return file.status();
      place.record = RecordOrdinal(**file, record->offset);
      place.record_known = true;
    }
    places.push_back(std::move(place));
  }
  return places;
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
  if (absl::Status status = walk.Evaluate(row, &shown.log, &columns); !status.ok()) return status;
  uint64_t bytes = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    Feature feature = walk.plan().work().output[i];
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
  for (uint64_t step = first_step; step - first_step < steps_max; ++step) {
    absl::StatusOr<bool> more = walk.Next();
    if (!more.ok()) return more.status();
    if (!*more) break;
    for (uint32_t row = 0; row < walk.rows(); ++row) {
      for (uint32_t i = 0; i < walk.plan().width(); ++i) {
        const std::optional<RecordRef> record = walk.Locate(walk.reference(row, i));
        if (record && record->offset == offset && wanted[record->file])
          return RowPlace{step, row, record->epoch};
      }
    }
  }
  return absl::NotFoundError(absl::StrCat("no row of the steps looked at, from ", first_step,
                                          " on, comes from offset ", offset, " of ", file,
                                          "; is it where a record begins?"));
}

}  // namespace penstock
