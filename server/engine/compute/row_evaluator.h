// Computes the columns of a block of rows from its references, by a tree of work.
//
// Threads:  one evaluator a worker.
// Owns:     the temporaries of the rows it computed last, until Reset().
#pragma once

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "server/engine/compute/shared_rows.h"
#include "server/engine/compute/stage_clock.h"
#include "server/engine/order/dataset.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/damage_log.h"
#include "server/engine/read/file_table.h"

namespace penstock {

using Columns = absl::InlinedVector<Column, 8>;

class EvaluatingLoader;
class PrefixMember;
class RowsAway;
struct PrefixShare;

class RowEvaluator {
 public:
  // With `sharing`, which must outlive it, work that other pipelines do too is done by whoever
  // comes first.
  RowEvaluator(FileTable& files, StageClock& clock, const PrefixMember* sharing = nullptr)
      : files_(files), clock_(&clock), sharing_(sharing) {}

  // Forgets the temporaries.
  void Reset() {
    arena_.Reset();
    shared_.Release();
  }
  Arena& arena() { return arena_; }
  FileTable& files() { return files_; }
  StageClock& clock() { return *clock_; }
  // Where another worker goes on.
  void set_clock(StageClock& clock) { clock_ = &clock; }
  // Rows that others have computed, which must outlive it; null: none.
  void set_rows_away(const RowsAway* rows) { rows_away_ = rows; }

  // The columns of a node. Where out[i].data is set, feature i is written there or left elsewhere.
  // Of a failure: the first row that failed in the op that met it; an earlier row may still fail in
  // a later op.
  RowStatus Evaluate(const WorkNode& node, RowReferences rows, absl::Span<Column> out);

  // Adds a column of the identities of these elements of `node`.
  void AddIdentities(const WorkNode& node, RowReferences rows, Columns* columns);
  // What is drawn from now on is told to `log`, until it is null.
  void set_draw_log(DrawLog* log) { draw_log_ = log; }

  // The node whose columns are rows of a batch that is larger than the caches; null: none.
  void set_past_caches(const WorkNode* node) { past_caches_ = node; }

  // The stage that was at work when Evaluate() failed.
  int failed_stage() const { return failed_stage_; }
  // Whether that was a source, whose bytes could not be had.
  bool failed_loading() const { return failed_loading_; }

 private:
  RowStatus LoadEvaluated(const WorkNode& node, const EvaluatingLoader& loader, RowReferences rows,
                          absl::Span<Column> out);
  RowStatus EvaluateWork(const WorkNode& node, RowReferences rows, absl::Span<Column> out);
  bool EvaluateShared(const WorkNode& node, const PrefixShare& share, RowReferences rows,
                      absl::Span<Column> out);
  RowStatus EvaluateBranches(const WorkNode& node, RowReferences rows, absl::Span<Column> out);

  FileTable& files_;
  StageClock* clock_;
  const PrefixMember* const sharing_;    // may be null
  const RowsAway* rows_away_ = nullptr;  // may be null
  Arena arena_;
  SharedRows shared_;
  DrawLog* draw_log_ = nullptr;
  const WorkNode* past_caches_ = nullptr;
  int failed_stage_ = 0;
  bool failed_loading_ = false;
};

// Brings the bytes of the records nearer.
void FetchRecords(absl::Span<const RecordRef> records);

// The reference that an element shows as its origin: the first that lies in a file. Of what is, or
// was, a batch: that of its first row.
RecordRef ElementOrigin(absl::Span<const RecordRef> element, const WorkNode& work,
                        const Manifest& manifest);

// An element whose values fail, as what was skipped is listed.
SkippedPlace FailedPlace(absl::Span<const RecordRef> element, const WorkNode& work,
                         const Manifest& manifest, std::string reason);

// `status` with the address of the first of an element's records that lies in a file, as `work`
// locates it; it says so where that is where a batch begins.
absl::Status WithElementAddress(const absl::Status& status, absl::Span<const RecordRef> element,
                                const WorkNode& work, FileTable& files);

}  // namespace penstock
