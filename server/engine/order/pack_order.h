// The order of `pack`: documents become sequences, window by window.
//
// A sequence is one reference, to a cell that says which pieces of which documents it is made of
// (server/engine/read/packed_row.h). The position is that of the input in front of the window, and
// the number of the sequence in it; going there packs the window again.
//
// Threads:  one at a time (the front's lock).
// Owns:     the references of a window's documents that no sequence has yet.
// Limits:   a window ends behind kMaxWindowTokens, at the next multiple of 64 documents.
// Cost:     O(log n) a document, n being the documents of a window; it looks at the number of
//           tokens of each, and at no token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/order/order_op.h"
#include "server/engine/order/packing.h"
#include "server/engine/read/document_counts.h"
#include "server/engine/read/skip_limits.h"

namespace penstock {

struct PackGauge;
struct WorkNode;

struct PackWindows {
  static constexpr uint64_t kMaxWindowTokens = uint64_t{1} << 26;

  PackRules rules;
  uint64_t window = 10'000;  // documents
  int stage = 0;             // whose gauge counts
};

// The documents in front of it, one reference each, with the number of tokens of each, from 0 to
// 2^31 - 1.
class PackInput {
 public:
  virtual ~PackInput() = default;

  // As OrderOp::Pull(), and adds the numbers of tokens to `tokens`.
  virtual Pulled Pull(uint64_t count, RecordList& documents, std::vector<uint32_t>& tokens,
                      uint64_t* pulled) = 0;
  // The path of a document, and what a row that begins with it is known by.
  virtual uint64_t PathOf(const RecordRef& document) const = 0;
  virtual RecordRef OriginOf(const RecordRef& document) const = 0;

  // As those of an OrderOp.
  virtual void Restart(uint64_t epoch) = 0;
  virtual void Save(Position& position) const = 0;
  virtual absl::Status Restore(Position& position) = 0;
  virtual absl::Status status() const = 0;
};

// Elements in cells, whose number (ElementCells::First) is that of their tokens.
std::unique_ptr<PackInput> DocumentsInCells(std::unique_ptr<OrderOp> input);

// What documents are made of: the records that `input` deals in. Positions are those of a section
// that makes the documents, so that going on with and without counts is the same. `documents`, the
// work that makes them, outlives it.
struct CountedDocuments {
  std::shared_ptr<DocumentCounts> counts;
  const WorkNode* documents = nullptr;
  int stage = 0;
  std::string stage_name = {};
  std::optional<IgnoredFailures> ignored = {};  // where records that make no document are left out
};
std::unique_ptr<PackInput> DocumentsByCounts(FrontContext& context, CountedDocuments documents,
                                             std::unique_ptr<OrderOp> input);

std::unique_ptr<OrderOp> PackOrder(FrontContext& context, const PackWindows& windows,
                                   std::unique_ptr<PackInput> input);

}  // namespace penstock
