#include "server/engine/stage/packed_documents.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/compute/countable_loader.h"
#include "server/engine/read/packed_row.h"
#include "server/engine/stage/packed_by_counts.h"
#include "server/engine/stage/packed_row_writer.h"

namespace penstock {
namespace {

constexpr int64_t kMaxDocumentTokens = (int64_t{1} << 31) - 2;

class Measuring final : public WorkOp {
 public:
  Measuring(const Signature& documents, const PackForm& form)
      : form_(form), documents_(documents), tokens_(documents[form.tokens]) {
    output_ = {{"document_tokens", {DType::kInt64, {}}}, tokens_};
    if (form.mask >= LossMask::kFeature) output_.push_back(documents[form.mask_by]);
  }

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    out[0].row_bytes = sizeof(int64_t);
    if (out[0].data == nullptr) out[0].data = arena.Allocate(rows * sizeof(int64_t));
    for (int row = 0; row < rows; ++row) {
      const int64_t tokens = LengthOf(tokens_, in[form_.tokens], row);
      absl::Status status = Check(tokens, in, row);
      if (!status.ok()) return {std::move(status), row};
      const int64_t length = tokens + (form_.end_id ? 1 : 0);
      std::memcpy(out[0].data + row * sizeof(length), &length, sizeof(length));
    }
    out[1] = in[form_.tokens];
    if (out.size() > 2) out[2] = in[form_.mask_by];
    return {};
  }

 private:
  static int64_t LengthOf(const Feature& feature, const Column& column, int row) {
    return static_cast<int64_t>(column.row_size(row) / DTypeSize(feature.type.dtype));
  }

  absl::Status Check(int64_t tokens, absl::Span<const Column> in, int row) const {
    if (tokens > kMaxDocumentTokens) {
      return absl::DataLossError(absl::StrCat("document larger than limit: ", tokens, " > ",
                                              kMaxDocumentTokens, " tokens"));
    }
    const int64_t length = tokens + (form_.end_id ? 1 : 0);
    if (form_.refuses_long && length > form_.sequence_length) {
      return absl::DataLossError(absl::StrCat("expected a document of at most ",
                                              form_.sequence_length, " tokens, found ", length,
                                              ": long_documents may be \"split\" or \"truncate\""));
    }
    if (form_.mask < LossMask::kFeature) return absl::OkStatus();
    const Feature& feature = documents_[form_.mask_by];
    if (form_.mask == LossMask::kFeature) {
      const int64_t mask = LengthOf(feature, in[form_.mask_by], row);
      if (mask == tokens) return absl::OkStatus();
      return absl::DataLossError(absl::StrCat("mask: expected \"", feature.name, "\" as long as \"",
                                              tokens_.name, "\", ", tokens, ", found ", mask));
    }
    const int64_t begin = AnswerBegin(feature, in[form_.mask_by], row);
    if (begin >= 0 && begin <= tokens) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("answer_begin: expected \"", feature.name,
                                            "\" from 0 to ", tokens,
                                            ", the number of tokens, found ", begin));
  }

  const PackForm form_;
  const Signature documents_;
  const Feature tokens_;
  Signature output_;
};

class PackedLoader final : public ColumnLoader, public CountableLoader {
 public:
  PackedLoader(const PackedDocuments& packed, const ElementCells& cells)
      : packed_(packed),
        cells_(cells),
        writer_(packed.documents, packed.form),
        counting_(MeasureDocuments(packed.documents, packed.form)) {}

  const Signature& output() const override { return writer_.output(); }
  bool is_dict() const override { return true; }

  uint64_t Path(const RecordRef& reference) const override { return PathOfPacked(reference); }
  // Of the first document.
  bool locates_batch() const override { return true; }

  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    size_t pieces = 0;
    for (uint32_t row = 0; row < rows.rows; ++row) pieces += PackedRow(rows[row]).num_pieces();
    auto* const documents = arena.AllocateArray<RecordRef>(pieces);
    size_t at = 0;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const PackedRow packed(rows[row]);
      for (size_t i = 0; i < packed.num_pieces(); ++i) documents[at++] = packed.document(i);
    }
    std::vector<Column> in(cells_.output().size());
    RowStatus loaded = cells_.Load({documents, static_cast<uint32_t>(pieces), 1}, files,
                                   absl::MakeSpan(in), arena);
    if (!loaded.ok()) return loaded;
    writer_.WriteRows(rows, in, out, arena);
    return {};
  }

  const WorkOp& counting() const override { return *counting_; }
  const std::optional<IgnoredFailures>& ignored() const override { return packed_.ignored; }

  std::string CountingKey() const override {
    const PackForm& form = packed_.form;
    std::string key = absl::StrCat("tokens ", packed_.documents[form.tokens].name,
                                   form.end_id ? ", and an end" : "");
    if (form.refuses_long) absl::StrAppend(&key, ", at most ", form.sequence_length);
    if (form.mask >= LossMask::kFeature) {
      absl::StrAppend(&key, form.mask == LossMask::kAnswer ? ", answer from " : ", mask ",
                      packed_.documents[form.mask_by].name);
    }
    return key;
  }

  OrderFactory OrderByCounts(std::shared_ptr<DocumentCounts> counts, const WorkNode* elements,
                             std::string stage_name) const override {
    return [windows = packed_.windows,
            counted = CountedDocuments{std::move(counts), elements, packed_.windows.stage,
                                       std::move(stage_name), packed_.ignored}](
               FrontContext& context, OrderInputs inputs) {
      return PackOrder(context, windows, DocumentsByCounts(context, counted, std::move(inputs[0])));
    };
  }
  std::unique_ptr<ColumnLoader> LoaderByCounts() const override {
    return std::make_unique<PackedByCounts>(packed_);
  }

 private:
  const PackedDocuments packed_;
  const ElementCells& cells_;
  const PackedRowWriter writer_;
  const std::unique_ptr<WorkOp> counting_;
};

}  // namespace

std::unique_ptr<WorkOp> MeasureDocuments(const Signature& documents, const PackForm& form) {
  return std::make_unique<Measuring>(documents, form);
}

Signature PackedSignature(const Signature& documents, const PackForm& form) {
  const Shape row = {form.sequence_length};
  const Feature& tokens = documents[form.tokens];
  Signature packed = {{tokens.name, {tokens.type.dtype, row}}};
  if (form.segment_ids) packed.push_back({"segment_ids", {DType::kInt32, row}});
  if (form.positions) packed.push_back({"positions", {DType::kInt32, row}});
  if (form.mask != LossMask::kNone) {
    const bool has_own_type = form.mask == LossMask::kFeature;
    packed.push_back(
        {"loss_mask", {has_own_type ? documents[form.mask_by].type.dtype : DType::kBool, row}});
  }
  if (form.cu_seqlens) {
    const int64_t places = form.max_documents ? int64_t{*form.max_documents} + 1 : kUnknownSize;
    packed.push_back({"cu_seqlens", {DType::kInt32, {places}}});
  }
  return packed;
}

uint64_t PathOfPacked(const RecordRef& row) {
  return MixPath(ElementCells::PackedPath(row), row.epoch);
}

std::unique_ptr<ColumnLoader> LoadPacked(const PackedDocuments& packed, const ElementCells& cells) {
  return std::make_unique<PackedLoader>(packed, cells);
}

}  // namespace penstock
