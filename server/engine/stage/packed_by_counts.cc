#include "server/engine/stage/packed_by_counts.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/read/packed_row.h"

namespace penstock {
namespace {

// Documents that are computed together.
constexpr uint32_t kStripDocuments = 32;

const WorkNode& SourceOf(const WorkNode& elements) {
  const WorkNode* node = &elements;
  while (node->kind == WorkNode::Kind::kWork) node = node->inputs[0].get();
  return *node;
}

bool AreSame(const RecordRef& a, const RecordRef& b) {
  return a.file == b.file && a.offset == b.offset && a.length == b.length && a.epoch == b.epoch;
}

RowBytes CopyOf(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

std::string BytesOf(const RowBytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
}

}  // namespace

// The documents of a block of rows, each once where the next row has the rest of it.
class PackedByCounts::Documents {
 public:
  Documents(const PackedByCounts& loader, RowEvaluator& evaluator, const WorkNode& elements)
      : loader_(loader), evaluator_(evaluator), elements_(elements) {}

  // Those of a row, behind those of the rows before it.
  void Add(const PackedRow& packed, uint32_t row) {
    for (size_t i = 0; i < packed.num_pieces(); ++i) {
      const PackedRow::Piece piece = packed.piece(i);
      const RecordRef reference = packed.document(i);
      if (i > 0 || all_.empty() || !AreSame(all_.back().reference, reference))
        all_.push_back({reference, row, piece.tokens, false, {}, {}, nullptr});
      all_.back().is_split = all_.back().is_split || piece.length < piece.tokens;
      of_pieces_.push_back(static_cast<uint32_t>(all_.size() - 1));
    }
  }

  // Of a failure, the row of the first document that failed.
  RowStatus Compute(Failed* failed) {
    Resolve();
    std::vector<uint32_t> strip;
    for (uint32_t i = 0; i < all_.size(); ++i) {
      Document& document = all_[i];
      if (document.is_split) document.kept = loader_.recent_.Find(Place(document));
      if (document.kept != nullptr && IsAsCounted(document)) {
        document.tokens = CopyOf(document.kept->tokens);
        document.mask = CopyOf(document.kept->mask);
      } else {
        document.kept = nullptr;
        strip.push_back(i);
      }
      if (strip.empty() || (strip.size() < kStripDocuments && i + 1 < all_.size())) continue;
      RowStatus status = ComputeStrip(strip, failed);
      if (!status.ok()) return status;
      strip.clear();
    }
    return {};
  }

  // The tokens of all pieces, and what their mask is by.
  std::vector<Column> Columns(Arena& arena) const {
    std::vector<Column> columns(2);
    for (const bool is_mask : {false, true}) {
      auto* const rows = arena.AllocateArray<RowBytes>(of_pieces_.size());
      for (size_t i = 0; i < of_pieces_.size(); ++i) {
        const Document& document = all_[of_pieces_[i]];
        rows[i] = is_mask ? document.mask : document.tokens;
      }
      columns[is_mask].rows = rows;
    }
    return columns;
  }

 private:
  struct Document {
    RecordRef reference;
    uint32_t row;      // the first that has a part of it
    uint32_t counted;  // tokens, by the index
    bool is_split;     // some row has a part of it only
    RowBytes tokens;
    RowBytes mask;
    RecentDocuments::Kept kept;  // whose those are; null: the evaluator's
  };

  static std::pair<uint32_t, uint64_t> Place(const Document& document) {
    return {document.reference.file, document.reference.offset};
  }

  // A kept one is of this plan's files, and was compared when it was kept.
  bool IsAsCounted(const Document& document) const {
    const size_t bytes =
        DTypeSize(loader_.packed_.documents[loader_.packed_.form.tokens].type.dtype);
    return document.kept->tokens.size() / bytes + (loader_.packed_.form.end_id ? 1 : 0) ==
           document.counted;
  }

  // Positions become records.
  void Resolve() {
    const ColumnLoader& source = *SourceOf(elements_).loader;
    if (!source.resolves() || all_.empty()) return;
    Arena& arena = evaluator_.arena();
    auto* const references = arena.AllocateArray<RecordRef>(all_.size());
    for (size_t i = 0; i < all_.size(); ++i) references[i] = all_[i].reference;
    source.Resolve(references, static_cast<uint32_t>(all_.size()), 1, evaluator_.files(), arena);
    for (size_t i = 0; i < all_.size(); ++i) all_[i].reference = references[i];
  }

  RowStatus ComputeStrip(const std::vector<uint32_t>& strip, Failed* failed) {
    const auto count = static_cast<uint32_t>(strip.size());
    auto* const references = evaluator_.arena().AllocateArray<RecordRef>(count);
    for (uint32_t i = 0; i < count; ++i) references[i] = all_[strip[i]].reference;
    FetchRecords({references, count});
    // An op stops at its own first bad document, but an earlier one may fail in a later op: look
    // again at those before it.
    RowStatus failure;
    for (uint32_t left = count; left > 0;) {
      Failed where;
      RowStatus status = Take(strip, references, left, &where);
      if (status.ok()) break;
      left = status.row;
      failure = std::move(status);
      *failed = where;
    }
    if (failure.ok()) return {};
    const Document& document = all_[strip[failure.row]];
    // Where failures are left out, a sequence would be lost for a document.
    if (loader_.packed_.ignored && absl::IsDataLoss(failure.status) && !failed->loading) {
      failure.status = absl::FailedPreconditionError(
          absl::StrCat(failure.status.message(), "; its index of tokens says that it has ",
                       document.counted, " tokens: ", RemedyOfCounts()));
    }
    failure.row = static_cast<int>(document.row);
    failure.status =
        WithElementAddress(failure.status, {&document.reference, 1}, elements_, evaluator_.files());
    return failure;
  }

  RowStatus Take(const std::vector<uint32_t>& strip, const RecordRef* references, uint32_t count,
                 Failed* where) {
    penstock::Columns elements(elements_.output.size());
    RowStatus status =
        evaluator_.Evaluate(elements_, {references, count, 1}, absl::MakeSpan(elements));
    if (!status.ok()) {
      *where = {evaluator_.failed_stage(), evaluator_.failed_loading()};
      return status;
    }
    const WorkOp& measuring = *loader_.measuring_;
    penstock::Columns measured(measuring.output().size());
    status = measuring.Run(static_cast<int>(count), elements, absl::MakeSpan(measured),
                           evaluator_.arena());
    if (!status.ok()) return status;
    for (uint32_t i = 0; i < count; ++i) {
      Document& document = all_[strip[i]];
      int64_t tokens = 0;
      std::memcpy(&tokens, measured[0].row(i), sizeof(tokens));
      if (tokens != document.counted) {
        return {
            absl::FailedPreconditionError(absl::StrCat(
                "expected a document of ", document.counted,
                " tokens, as its index of tokens says, found ", tokens, ": ", RemedyOfCounts())),
            static_cast<int>(i)};
      }
      document.tokens = {measured[1].row(i), measured[1].row_size(i)};
      if (measured.size() > 2) document.mask = {measured[2].row(i), measured[2].row_size(i)};
      if (document.is_split) Keep(document);
    }
    return {};
  }

  void Keep(const Document& document) {
    auto kept = std::make_shared<RecentDocuments::Document>();
    kept->charge.Add(document.tokens.size + document.mask.size);
    kept->tokens = BytesOf(document.tokens);
    kept->mask = BytesOf(document.mask);
    loader_.recent_.Keep(Place(document), std::move(kept));
  }

  const PackedByCounts& loader_;
  RowEvaluator& evaluator_;
  const WorkNode& elements_;
  std::vector<Document> all_;
  std::vector<uint32_t> of_pieces_;  // the number of each piece's document in all_
};

PackedByCounts::PackedByCounts(const PackedDocuments& packed)
    : packed_(packed),
      writer_(packed.documents, packed.form),
      measuring_(MeasureDocuments(packed.documents, packed.form)),
      recent_(kKeptBytes) {}

RowStatus PackedByCounts::LoadBy(RowEvaluator& evaluator, const WorkNode& elements,
                                 RowReferences rows, absl::Span<Column> out, Failed* failed) const {
  Documents documents(*this, evaluator, elements);
  for (uint32_t row = 0; row < rows.rows; ++row) documents.Add(PackedRow(rows[row]), row);
  RowStatus computed = documents.Compute(failed);
  if (!computed.ok()) {
    // Where the row begins in another file, that one is told too.
    const std::string& path = evaluator.files().manifest()[rows[computed.row].file].path;
    if (!absl::StrContains(computed.status.message(), path)) {
      computed.status = absl::Status(
          computed.status.code(),
          absl::StrCat(computed.status.message(), ", in a sequence that begins in ", path));
    }
    return computed;
  }
  Arena& arena = evaluator.arena();
  writer_.WriteRows(rows, documents.Columns(arena), out, arena);
  return {};
}

}  // namespace penstock
