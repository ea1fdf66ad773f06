#include "server/engine/run/order_walk.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "base/row_shape.h"
#include "base/stop_flag.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/run/front.h"
#include "server/engine/run/record_origins.h"
#include "server/engine/section/section.h"
#include "server/engine/stage/unbatch_rows.h"

namespace penstock {
namespace {

class OrderWalk {
 public:
  OrderWalk(std::shared_ptr<const PlanImpl> plan, const WalkLimits& limits)
      : stop_(limits.stop != nullptr ? *limits.stop : never_),
        plan_(std::move(plan)),
        files_(plan_->files(), plan_->manifest()),
        reader_(store_),
        clock_(static_cast<int>(plan_->stage_names().size())),
        section_runner_(store_, files_, clock_),
        evaluator_(files_, clock_),
        front_(*plan_, files_, store_, reads_, sections_, damage_, stop_),
        origins_(*plan_) {
    front_.set_clock(&clock_);
    section_runner_.set_element_rows(&element_rows_);
  }
  ~OrderWalk() {
    // What was asked for must be done before those who asked are gone; where nobody wants it, as if
    // there were nothing to do.
    const StopFlag::Scope none(nullptr);
    if (stop_.load()) {
      while (SectionTask* task = sections_.Pop()) task->done.store(true);
    }
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
    whole_.clear();
    if (!plan_->program().batched())
      whole_ = origins_.Of(plan_->work(), {element(0), plan_->width()});
    return true;
  }

  absl::Status End() const {
    return absl::OutOfRangeError(absl::StrCat("the stream has only ", next_, " steps"));
  }

  uint32_t rows() const {
    size_t rows = step_.info.rows;
    for (const Origin& origin : whole_) rows = std::max(rows, origin.rows.size());
    return rows;
  }
  // Whether the step is a batch that a later stage has taken as an element, or several of them side
  // by side.
  bool is_whole_batch() const {
    return std::any_of(whole_.begin(), whole_.end(),
                       [](const Origin& origin) { return !origin.rows.empty(); });
  }
  // The records that fill a row.
  void FindPlaces(uint32_t row, std::vector<RecordRef>* places) const {
    places->clear();
    if (!is_whole_batch()) {
      for (const Origin& origin : origins_.Of(plan_->work(), {element(row), plan_->width()}))
        RecordOrigins::AddRecords(origin, places);
      return;
    }
    for (const Origin& origin : whole_) {
      if (origin.rows.empty()) {
        places->push_back(origin.record);
      } else if (row < origin.rows.size()) {
        for (const Origin& of_row : origin.rows[row]) RecordOrigins::AddRecords(of_row, places);
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
  using Origin = RecordOrigins::Origin;

  void RunSection(SectionTask* task) {
    std::vector<RecordOrigins::Origins> rows = origins_.OfInput(*task);
    element_rows_.clear();
    section_runner_.Run(task);
    // Rows that are handed on are known already.
    if (task->section->hands_on_rows) return;
    origins_.Remember(*task, std::move(rows), element_rows_);
  }

  bool WorkOnce() {
    if (SectionTask* task = sections_.Pop()) {
      RunSection(task);
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
      CheckStop();
      const Pulled result = step();
      CheckStop();
      if (result != Pulled::kBlocked || !WorkOnce()) return result;
    }
  }

  const std::atomic<bool> never_{false};
  const std::atomic<bool>& stop_;
  const std::shared_ptr<const PlanImpl> plan_;
  FileTable files_;
  RecordStore store_;
  ReadQueue reads_;
  SectionQueue sections_;
  DamageLog damage_;
  ChunkReader reader_;
  StageClock clock_;
  SectionRunner section_runner_;
  RowEvaluator evaluator_;
  Front front_;
  Step step_;
  uint64_t next_ = 0;
  RecordOrigins origins_;
  RecordOrigins::Origins whole_;        // of a step that is no batch of elements
  std::vector<uint32_t> element_rows_;  // of the section's task that is being done
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
  std::map<uint32_t, std::vector<size_t>> of_files;  // their places, by the file
  for (const RecordRef& record : records) {
    RecordPlace& place = places.emplace_back();
    const FileEntry& entry = walk.plan().manifest()[record.file];
    place.file = entry.path;
    place.offset = record.offset;
    place.epoch = record.epoch;
    if (entry.indexed != nullptr) of_files[record.file].push_back(places.size() - 1);
  }
  for (const auto& [file, of_file] : of_files) {
    std::vector<uint64_t> offsets;
    offsets.reserve(of_file.size());
    for (const size_t place : of_file) offsets.push_back(places[place].offset);
    const absl::StatusOr<std::vector<uint64_t>> ordinals = walk.files().OrdinalsOf(file, offsets);
    if (!ordinals.ok()) return ordinals.status();
    for (size_t i = 0; i < of_file.size(); ++i) {
      places[of_file[i]].record = (*ordinals)[i];
      places[of_file[i]].record_known = true;
    }
  }
  return places;
}

// Of an element that is a batch of so many rows, one of these; nothing where it is something else
// that was made of a batch.
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
    if (column.rows != nullptr) {
      column.rows += row;
    } else {
      column.data += row * column.row_bytes;
    }
    if (column.dims != nullptr) column.dims += row * (*features)[i].type.shape.size();
  }
}

// Does what is asked of a walk over the plan within the limits.
template <typename Result>
absl::StatusOr<Result> Walk(std::shared_ptr<const Plan> plan, const WalkLimits& limits,
                            absl::FunctionRef<absl::StatusOr<Result>(OrderWalk& walk)> look_up) {
  const MemoryAccount::Scope charged(limits.memory);
  const StopFlag::Scope stops(limits.stop);
  try {
    OrderWalk walk(std::static_pointer_cast<const PlanImpl>(std::move(plan)), limits);
    return look_up(walk);
  } catch (const Stopped&) {
    return absl::CancelledError("the look-up is not wanted any more");
  } catch (const MemoryLimitError& error) {
    return MemoryStatus(error);
  }
}

absl::StatusOr<std::vector<RecordPlace>> RecordsOf(OrderWalk& walk, uint64_t step, uint32_t row) {
  if (absl::Status status = GoToRow(walk, step, row); !status.ok()) return status;
  return PlacesOf(walk, row);
}

absl::StatusOr<ShownRow> Show(OrderWalk& walk, uint64_t step, uint32_t row) {
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

absl::StatusOr<RowPlace> Find(OrderWalk& walk, const std::string& file, uint64_t offset,
                              uint64_t first_step, uint64_t steps_max) {
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

}  // namespace

absl::StatusOr<std::vector<RecordPlace>> FindRecords(std::shared_ptr<const Plan> plan,
                                                     uint64_t step, uint32_t row,
                                                     const WalkLimits& limits) {
  return Walk<std::vector<RecordPlace>>(
      std::move(plan), limits, [&](OrderWalk& walk) { return RecordsOf(walk, step, row); });
}

absl::StatusOr<ShownRow> ShowRow(std::shared_ptr<const Plan> plan, uint64_t step, uint32_t row,
                                 const WalkLimits& limits) {
  return Walk<ShownRow>(std::move(plan), limits,
                        [&](OrderWalk& walk) { return Show(walk, step, row); });
}

absl::StatusOr<RowPlace> FindRow(std::shared_ptr<const Plan> plan, const std::string& file,
                                 uint64_t offset, uint64_t first_step, uint64_t steps_max,
                                 const WalkLimits& limits) {
  return Walk<RowPlace>(std::move(plan), limits, [&](OrderWalk& walk) {
    return Find(walk, file, offset, first_step, steps_max);
  });
}

}  // namespace penstock
