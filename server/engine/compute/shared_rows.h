// What one evaluator does to have the results of work that other pipelines do too: it takes those
// that are there, makes some of those that nobody has begun, and waits for the rest.
//
// It makes few at a time, so that two workers which come to the same rows at once share them out
// instead of one waiting for all.
//
// Threads:  one evaluator's.
// Owns:     its hold on the elements it looks at, until Release().
// Limits:   it waits for others at most as long as SharedPrefixes::Options says, then computes by
//           itself.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "base/column.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/share/shared_elements.h"

namespace penstock {

class RowEvaluator;
struct PrefixShare;

class SharedRows {
 public:
  SharedRows() = default;
  ~SharedRows() { Release(); }
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;

  // The results of the share's prefix, as RowEvaluator::Evaluate() puts them. False, with nothing
  // that counts, when a row fails or the rows are none of the share's.
  bool Load(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows,
            absl::Span<Column> out);

  // What was loaded is no longer looked at.
  void Release();

 private:
  bool Name(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows);
  bool Make(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows,
            absl::Span<RecordRef> cells);
  bool Measure(RowEvaluator& evaluator, const PrefixShare& share, RowReferences rows,
               absl::Span<Column> out);

  std::vector<SharedElements::Row> rows_;  // of a call
  std::vector<uint32_t> made_;             // of a part of it
  std::vector<SharedElement*> held_;
  SharedElements* elements_ = nullptr;  // whose those are
};

}  // namespace penstock
