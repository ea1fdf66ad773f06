// What `pack` computes: the number of tokens of each document, ahead of the front, and the rows of
// sequences behind it.
//
// Threads:  constant after construction; safe from any thread.
// Cost:     rows are written piece by piece, each feature in one pass over its tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/engine/order/pack_order.h"
#include "server/engine/order/work_op.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/read/skip_limits.h"

namespace penstock {

// Where the loss mask comes from.
enum class LossMask {
  kNone,    // there is none
  kTokens,  // every token counts, padding does not
  kFeature,
  kAnswer,  // tokens count from the place on that a feature tells
};

struct PackForm {
  uint32_t sequence_length = 1;
  size_t tokens = 0;   // number of the documents' feature
  size_t mask_by = 0;  // the same, of kFeature and kAnswer
  LossMask mask = LossMask::kNone;
  int64_t pad_id = 0;
  std::optional<int64_t> end_id;
  bool segment_ids = false;
  bool positions = false;
  bool cu_seqlens = false;
  std::optional<uint32_t> max_documents;
  bool refuses_long = false;  // a document longer than a sequence
};

// Features of a document: `document_tokens`, int64 (), the number of its tokens with the end id;
// its tokens; what the mask is by, if anything. DataLoss for one that does not fit together, is too
// long, or has more than 2^31 - 2 tokens.
std::unique_ptr<WorkOp> MeasureDocuments(const Signature& documents, const PackForm& form);

// What is packed, and how.
struct PackedDocuments {
  Signature documents;
  PackForm form;
  PackWindows windows;
  std::optional<IgnoredFailures> ignored;  // where documents that fail are left out
};

// The features of a sequence of these documents.
Signature PackedSignature(const Signature& documents, const PackForm& form);

// The path of a row that PackOrder() made.
uint64_t PathOfPacked(const RecordRef& row);

// Loads the rows that PackOrder() makes of elements in `cells`, which are those of
// MeasureDocuments() and outlive it. An index of tokens may take their place (CountableLoader).
std::unique_ptr<ColumnLoader> LoadPacked(const PackedDocuments& packed, const ElementCells& cells);

}  // namespace penstock
