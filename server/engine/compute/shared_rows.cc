#include "server/engine/compute/shared_rows.h"

#include <algorithm>
#include <optional>

#include "base/tick_clock.h"
#include "server/engine/compute/row_evaluator.h"
#include "server/engine/share/shared_prefixes.h"

namespace penstock {
namespace {

using Found = SharedElements::Found;

// What is made in one go takes about so long, and others may wait for it.
constexpr uint64_t kPartNs = 1'000'000;
constexpr uint64_t kPartRowsMax = 32;

// The prefix's results of these rows. False when one fails.
bool Compute(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows,
             absl::Span<Column> out) {
  const SplitWork& work = share.work;
  Columns in(work.node->inputs[0]->output.size());
  if (!evaluator.Evaluate(*work.node->inputs[0], rows, absl::MakeSpan(in)).ok()) return false;
  StageClock::Scope scope(evaluator.clock(), work.stage);
  for (size_t i = 0; i < work.prefix.size(); ++i) {
    const WorkOp& op = *work.prefix[i];
    const bool is_last = i + 1 == work.prefix.size();
    Columns next(op.output().size());
    if (!op.Run(static_cast<int>(rows.rows), in, is_last ? out : absl::MakeSpan(next),
                evaluator.arena())
             .ok()) {
      return false;
    }
    in = std::move(next);
  }
  return true;
}

}  // namespace

void SharedRows::Release() {
  if (held_.empty()) return;
  elements_->Release(held_);
  held_.clear();
}

bool SharedRows::Name(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows) {
  const WorkNode& source = *share.work.source;
  const Manifest& manifest = evaluator.files().manifest();
  rows_.assign(rows.rows, {});
  for (uint32_t row = 0; row < rows.rows; ++row) {
    const RecordRef place = source.loader->Locate((&rows[row])[source.reference]);
    if (place.file >= share.file_numbers.size()) return false;
    rows_[row].file = share.file_numbers[place.file];
    rows_[row].offset = manifest[place.file].is_one_element ? 0 : place.offset;
    if (rows_[row].file == PrefixShare::kNoFile) return false;
  }
  return true;
}

bool SharedRows::Measure(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows,
                         absl::Span<Column> out) {
  const uint64_t begin = MonotonicNanos();
  if (!Compute(evaluator, share, rows, out)) return false;
  const uint64_t ns = MonotonicNanos() - begin;
  uint64_t bytes = 0;
  for (uint32_t row = 0; row < rows.rows; ++row)
    bytes += share.work.cells.CellBytes(out, static_cast<int>(row));
  share.group->AddMeasured(rows.rows, ns, bytes);
  return true;
}

// Computes the rows that the caller has to, and keeps those that are to be kept.
bool SharedRows::Make(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows,
                      absl::Span<RecordRef> cells) {
  Arena& arena = evaluator.arena();
  const Arena::Mark mark = arena.GetMark();
  auto* const refs = arena.AllocateArray<RecordRef>(made_.size() * rows.stride);
  for (size_t i = 0; i < made_.size(); ++i)
    std::copy_n(&rows[made_[i]], rows.stride, refs + i * rows.stride);
  Columns columns(share.work.cells.output().size());
  const RowReferences part{refs, static_cast<uint32_t>(made_.size()), rows.stride};
  if (!Compute(evaluator, share, part, absl::MakeSpan(columns))) return false;
  StageClock::Scope scope(evaluator.clock(), share.work.stage);
  bool all_are_kept = true;
  for (size_t i = 0; i < made_.size(); ++i) {
    SharedElements::Row& row = rows_[made_[i]];
    const uint64_t bytes = share.work.cells.CellBytes(columns, static_cast<int>(i));
    if (bytes > UINT32_MAX) return false;
    row.length = static_cast<uint32_t>(bytes);
    uint8_t* cell = row.found == Found::kMine ? elements_->Room(share.group->id, &row) : nullptr;
    if (cell == nullptr) {
      cell = arena.Allocate(bytes);
      all_are_kept = false;
    }
    share.work.cells.Write(columns, static_cast<int>(i), /*path=*/0, cell);
    cells[made_[i]].data = cell;
    cells[made_[i]].length = row.length;
  }
  elements_->Put(share.group->id, share.member, absl::MakeSpan(rows_));
  // The next part has the same memory, while it is still in cache.
  if (all_are_kept) arena.Rewind(mark);
  return true;
}

bool SharedRows::Load(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows,
                      absl::Span<Column> out) {
  PrefixGroup& group = *share.group;
  if (group.state() == PrefixState::kCheap || !Name(evaluator, share, rows)) return false;
  StageClock& clock = evaluator.clock();
  if (group.state() == PrefixState::kMeasuring) {
    if (!Measure(evaluator, share, rows, out)) return false;
    clock.Count(share.work.stage, rows.rows);
    return true;
  }
  elements_ = &group.elements;
  const uint64_t part_rows =
      std::clamp<uint64_t>(kPartNs / (group.element_ns() + 1), 1, kPartRowsMax);
  auto* const refs = evaluator.arena().AllocateArray<RecordRef>(rows.rows);
  const absl::Span<RecordRef> cells(refs, rows.rows);
  std::fill(cells.begin(), cells.end(), RecordRef());
  uint64_t computed = 0;
  std::optional<uint64_t> waits_until;
  bool done = true;
  while (done) {
    elements_->Find(group.id, share.member, absl::MakeSpan(rows_), part_rows);
    bool is_open = false;
    made_.clear();
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const Found found = rows_[row].found;
      is_open = is_open || found == Found::kOpen;
      if (cells[row].data != nullptr || found == Found::kOpen) continue;
      if (found == Found::kHit) {
        cells[row].data = rows_[row].data;
        cells[row].length = rows_[row].length;
      } else {
        made_.push_back(row);
      }
    }
    if (!made_.empty()) {
      try {
        done = Make(evaluator, share, rows, cells);
      } catch (...) {
        // Others wait for what this one has begun.
        elements_->Drop(absl::MakeSpan(rows_));
        throw;
      }
      computed += made_.size();
    } else if (is_open) {
      const uint64_t now = MonotonicNanos();
      if (!waits_until) waits_until = now + group.wait_ns_max;
      const uint64_t left = *waits_until > now ? *waits_until - now : 0;
      if (!elements_->Wait(group.id, rows_, absl::Nanoseconds(static_cast<int64_t>(left)))) {
        for (SharedElements::Row& row : rows_) {
          if (row.found == Found::kOpen) row.found = Found::kAlone;
        }
      }
    } else {
      break;
    }
  }
  if (!done) elements_->Drop(absl::MakeSpan(rows_));
  for (const SharedElements::Row& row : rows_) {
    if (row.found == Found::kHit) held_.push_back(row.element);
  }
  if (!done) return false;
  share.counters->misses.fetch_add(computed, std::memory_order_relaxed);
  share.counters->hits.fetch_add(rows.rows - computed, std::memory_order_relaxed);
  for (const int stage : share.work.stages) clock.Count(stage, rows.rows - computed);
  clock.Count(share.work.stage, computed);
  StageClock::Scope scope(clock, share.work.stage);
  return share.work.cells.Load({refs, rows.rows, 1}, evaluator.files(), out, evaluator.arena())
      .ok();
}

}  // namespace penstock
