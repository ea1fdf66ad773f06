// The rows of sequences that were packed by counts: documents are computed when a sequence that has
// a part of them is, and what a count said is compared with what came.
//
// Threads:  safe from any thread.
// Owns:     documents of which sequences have parts, until others take their place: at most
//           kKeptBytes.
// Cost:     a document that several sequences have a part of is computed again where it is no
//           longer kept, or where two threads need it at the same time.
#pragma once

#include <cstdint>
#include <memory>

#include "server/engine/compute/evaluating_loader.h"
#include "server/engine/stage/packed_documents.h"
#include "server/engine/stage/packed_row_writer.h"
#include "server/engine/stage/recent_documents.h"

namespace penstock {

class PackedByCounts final : public EvaluatingLoader {
 public:
  static constexpr uint64_t kKeptBytes = 64 << 20;

  explicit PackedByCounts(const PackedDocuments& packed);

  const Signature& output() const override { return writer_.output(); }
  bool is_dict() const override { return true; }
  uint64_t Path(const RecordRef& reference) const override { return PathOfPacked(reference); }
  // Of the first document.
  bool locates_batch() const override { return true; }

  // Of a document whose number of tokens is another one: FailedPrecondition, so that nobody takes
  // it for damage.
  RowStatus LoadBy(RowEvaluator& evaluator, const WorkNode& elements, RowReferences rows,
                   absl::Span<Column> out, Failed* failed) const override;

 private:
  class Documents;

  const PackedDocuments packed_;
  const PackedRowWriter writer_;
  const std::unique_ptr<WorkOp> measuring_;
  mutable RecentDocuments recent_;
};

}  // namespace penstock
