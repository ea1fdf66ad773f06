#include "server/engine/compute/row_evaluator.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/pending_call.h"
#include "base/row_shape.h"
#include "io/record/tfrecord_frame.h"
#include "server/engine/compute/evaluating_loader.h"
#include "server/engine/compute/rows_away.h"
#include "server/engine/read/row_block.h"
#include "server/engine/share/shared_prefixes.h"

namespace penstock {
namespace {

// Of each record; what lies behind follows by itself.
constexpr uint32_t kFetchedBytes = 512;
// Behind the place of an element that a batch was made of, or that was taken out of one.
constexpr char kInBatch[] = ", in the batch that begins there";

}  // namespace

RowStatus RowEvaluator::Evaluate(const WorkNode& node, RowReferences rows, absl::Span<Column> out) {
  switch (node.kind) {
    case WorkNode::Kind::kLoad: {
      failed_stage_ = node.stages.back();
      failed_loading_ = !node.loader->fails_by_values();
      StageClock::Scope scope(*clock_, failed_stage_);
      // Of sources there are more, and none of them is such a one.
      const auto* const evaluating =
          node.inputs.empty() ? nullptr : dynamic_cast<const EvaluatingLoader*>(node.loader.get());
      if (evaluating != nullptr) return LoadEvaluated(node, *evaluating, rows, out);
      // A record may lie in a map, a look at which may hang as a read does.
      std::optional<PendingCall> call;
      const RecordRef* const first = rows.rows > 0 ? rows.refs + node.reference : nullptr;
      if (first != nullptr && !first->in_cell()) {
        const std::string& path = files_.manifest()[first->file].path;
        if (!path.empty()) call.emplace("reading", path, first->offset);
      }
      return node.loader->Load({rows.refs + node.reference, rows.rows, rows.stride}, files_, out,
                               arena_);
    }
    case WorkNode::Kind::kWork: {
      const PrefixShare* const share =
          sharing_ != nullptr ? sharing_->ShareOf(node.shareable) : nullptr;
      if (share != nullptr && EvaluateShared(node, *share, rows, out)) return {};
      return EvaluateWork(node, rows, out);
    }
    case WorkNode::Kind::kTuple: {
      for (const std::unique_ptr<WorkNode>& input : node.inputs) {
        RowStatus status = Evaluate(*input, rows, out.first(input->output.size()));
        if (!status.ok()) return status;
        out.remove_prefix(input->output.size());
      }
      return {};
    }
    case WorkNode::Kind::kBranch:
      return EvaluateBranches(node, rows, out);
  }
  return {};
}

RowStatus RowEvaluator::LoadEvaluated(const WorkNode& node, const EvaluatingLoader& loader,
                                      RowReferences rows, absl::Span<Column> out) {
  EvaluatingLoader::Failed failed;
  RowStatus status = loader.LoadBy(
      *this, *node.inputs[0], {rows.refs + node.reference, rows.rows, rows.stride}, out, &failed);
  if (status.ok()) return status;
  failed_stage_ = failed.stage == EvaluatingLoader::kOwn ? node.stages.back() : failed.stage;
  failed_loading_ = failed.loading;
  return status;
}

RowStatus RowEvaluator::EvaluateWork(const WorkNode& node, RowReferences rows,
                                     absl::Span<Column> out) {
  if (RowStatus made; rows_away_ != nullptr && rows_away_->Take(node, rows, out, &made)) {
    failed_stage_ = node.stages.back();
    failed_loading_ = false;
    if (made.ok()) clock_->Count(failed_stage_, rows.rows);
    return made;
  }
  Columns in(node.inputs[0]->output.size());
  RowStatus status = Evaluate(*node.inputs[0], rows, absl::MakeSpan(in));
  if (!status.ok()) return status;
  if (node.op->draws()) AddIdentities(*node.inputs[0], rows, &in);
  failed_stage_ = node.stages.back();
  failed_loading_ = false;
  StageClock::Scope scope(*clock_, failed_stage_);
  const bool past_caches = &node == past_caches_ &&
                           std::all_of(out.begin(), out.end(),
                                       [](const Column& column) { return column.data != nullptr; });
  const int count = static_cast<int>(rows.rows);
  status = past_caches ? node.op->RunPastCaches(count, in, out, arena_)
                       : node.op->Run(count, in, out, arena_);
  // What is no stage's own (own_rows.h) has no parts: its elements are counted already.
  if (status.ok() && !node.parts.empty()) clock_->Count(failed_stage_, rows.rows);
  return status;
}

// False, with nothing done, when a row fails: what it says then is the affair of the work as a
// whole, which may have left out what nobody needs of it.
bool RowEvaluator::EvaluateShared(const WorkNode& node, const PrefixShare& share,
                                  RowReferences rows, absl::Span<Column> out) {
  const SplitWork& work = share.work;
  const Columns asked(out.begin(), out.end());
  Columns in(work.cells.output().size());
  bool done = shared_.Load(*this, share, rows, work.rest.empty() ? out : absl::MakeSpan(in));
  for (size_t i = 0; i < work.rest.size() && done; ++i) {
    const WorkOp& op = *work.rest[i];
    if (op.draws()) AddIdentities(*node.inputs[0], rows, &in);
    StageClock::Scope scope(*clock_, node.stages.back());
    const bool is_last = i + 1 == work.rest.size();
    Columns next(op.output().size());
    done =
        op.Run(static_cast<int>(rows.rows), in, is_last ? out : absl::MakeSpan(next), arena_).ok();
    in = std::move(next);
    if (done && is_last) clock_->Count(node.stages.back(), rows.rows);
  }
  if (!done) std::copy(asked.begin(), asked.end(), out.begin());
  return done;
}

void RowEvaluator::AddIdentities(const WorkNode& node, RowReferences rows, Columns* columns) {
  auto* const identities = arena_.AllocateArray<RowIdentity>(rows.rows);
  for (uint32_t row = 0; row < rows.rows; ++row)
    identities[row] = {node.PathOf(&rows[row]), draw_log_};
  columns->push_back({reinterpret_cast<uint8_t*>(identities), sizeof(RowIdentity)});
}

RowStatus RowEvaluator::EvaluateBranches(const WorkNode& node, RowReferences rows,
                                         absl::Span<Column> out) {
  const auto branch_of = [&](uint32_t row) { return node.BranchOf(&rows[row]); };
  const size_t branch = branch_of(0);
  uint32_t same = 1;
  while (same < rows.rows && branch_of(same) == branch) ++same;
  if (same == rows.rows) return Evaluate(*node.inputs[branch], rows, out);

  // Each branch computes its own rows, which are then put into their order.
  for (size_t i = 0; i < out.size(); ++i) {
    const std::optional<int64_t> row_bytes = NumBytes(node.output[i].type);
    if (row_bytes) {
      out[i].row_bytes = *row_bytes;
      if (out[i].data == nullptr) out[i].data = arena_.Allocate(*row_bytes * rows.rows);
    } else {
      out[i].rows = arena_.AllocateArray<RowBytes>(rows.rows);
      const Shape& shape = node.output[i].type.shape;
      if (!node.output[i].type.packed() && HasUnknownAxes(shape))
        out[i].dims = arena_.AllocateArray<int64_t>(shape.size() * rows.rows);
    }
  }
  RowStatus lowest;
  int stage_of_lowest = 0;
  bool loading_of_lowest = false;
  for (size_t b = 0; b < node.inputs.size(); ++b) {
    auto* refs = arena_.AllocateArray<RecordRef>(size_t{rows.rows} * rows.stride);
    auto* places = arena_.AllocateArray<uint32_t>(rows.rows);
    uint32_t count = 0;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      if (branch_of(row) != b) continue;
      std::copy_n(rows.refs + size_t{row} * rows.stride, rows.stride,
                  refs + size_t{count} * rows.stride);
      places[count++] = row;
    }
    if (count == 0) continue;
    Columns columns(node.output.size());
    RowStatus status =
        Evaluate(*node.inputs[b], {refs, count, rows.stride}, absl::MakeSpan(columns));
    if (!status.ok()) {
      const int row = static_cast<int>(places[status.row]);
      if (lowest.ok() || row < lowest.row) {
        lowest = {std::move(status.status), row};
        stage_of_lowest = failed_stage_;
        loading_of_lowest = failed_loading_;
      }
      continue;
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      for (uint32_t r = 0; r < count; ++r) {
        if (out[i].data != nullptr) {
          std::memcpy(out[i].data + places[r] * out[i].row_bytes, columns[i].row(r),
                      out[i].row_bytes);
        } else {
          const_cast<RowBytes*>(out[i].rows)[places[r]] = {columns[i].row(r),
                                                           columns[i].row_size(r)};
          if (out[i].dims == nullptr) continue;
          const size_t axes = node.output[i].type.shape.size();
          std::copy_n(columns[i].dims + r * axes, axes,
                      const_cast<int64_t*>(out[i].dims) + places[r] * axes);
        }
      }
    }
  }
  if (!lowest.ok()) {
    failed_stage_ = stage_of_lowest;
    failed_loading_ = loading_of_lowest;
  }
  return lowest;
}

// Into the second cache: those of a block are soon taken from there, and more of them can be on
// their way at a time than to the first one, whose misses hold everything up when they are many
// (docs/decisions/0105-far-caches.md).
void FetchRecords(absl::Span<const RecordRef> records) {
  constexpr int kRead = 0, kSecondCache = 2;
  for (const RecordRef& record : records) {
    if (record.data == nullptr || RowBlock::HasRow(record)) continue;
    const uint32_t bytes = std::min(record.length, kFetchedBytes);
    for (uint32_t offset = 0; offset < bytes; offset += 64)
      __builtin_prefetch(record.data + offset, kRead, kSecondCache);
    // In a map it begins anywhere in a line, and its checksum lies behind it.
    if (record.in_map)
      __builtin_prefetch(record.data + bytes + kRecordFooterBytes - 1, kRead, kSecondCache);
  }
}

RecordRef ElementOrigin(absl::Span<const RecordRef> element, const WorkNode& work,
                        const Manifest& manifest) {
  for (const RecordRef& record : element) {
    if (record.file >= manifest.size() || manifest[record.file].path.empty()) continue;
    RecordRef place = work.SourceOf(record.file)->loader->Locate(record);
    place.epoch = element.front().epoch;
    return place;
  }
  return element.front();
}

SkippedPlace FailedPlace(absl::Span<const RecordRef> element, const WorkNode& work,
                         const Manifest& manifest, std::string reason) {
  const RecordRef origin = ElementOrigin(element, work, manifest);
  const WorkNode* const source = work.SourceOf(origin.file);
  if (source != nullptr && source->loader->locates_batch()) reason += kInBatch;
  return {origin.file,
          origin.epoch,
          {origin.offset, origin.length, DamageReason::kValue},
          std::move(reason)};
}

absl::Status WithElementAddress(const absl::Status& status, absl::Span<const RecordRef> element,
                                const WorkNode& work, FileTable& files) {
  for (const RecordRef& record : element) {
    if (record.file >= files.manifest().size() || files.manifest()[record.file].path.empty())
      continue;
    const ColumnLoader& loader = *work.SourceOf(record.file)->loader;
    const RecordRef place = loader.Locate(record);
    const absl::Status addressed = files.WithRecordAddress(status, place.file, place.offset);
    // Of what has an address of its own, that is no batch's.
    if (!loader.locates_batch() || addressed == status) return addressed;
    return absl::Status(addressed.code(), absl::StrCat(addressed.message(), kInBatch));
  }
  return status;
}

}  // namespace penstock
