#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/map_source.h"
#include "server/engine/tensor/structure.h"
#include "server/expr/program.h"

namespace penstock {
namespace {

// A compiled program and the sources that it came from, so that consecutive maps can be compiled as
// one.
class MapOp final : public WorkOp {
 public:
  static absl::StatusOr<std::unique_ptr<MapOp>> Create(Signature input,
                                                       std::vector<expr::MapSource> sources) {
    absl::StatusOr<std::unique_ptr<expr::Program>> program = expr::Compile(input, sources);
    if (!program.ok()) return program.status();
    return std::unique_ptr<MapOp>(
        new MapOp(std::move(input), std::move(sources), *std::move(program)));
  }

  const Signature& output() const override { return program_->output(); }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    return RunProgram(rows, in, out, arena, /*past_caches=*/false);
  }
  RowStatus RunPastCaches(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                          Arena& arena) const override {
    return RunProgram(rows, in, out, arena, /*past_caches=*/true);
  }

  bool draws() const override { return program_->draws(); }

  std::string Describe() const override { return program_->DebugString(); }

  std::unique_ptr<WorkOp> FusedWith(const WorkOp& next) const override {
    const auto* map = dynamic_cast<const MapOp*>(&next);
    if (map == nullptr) return nullptr;
    std::vector<expr::MapSource> sources = sources_;
    sources.insert(sources.end(), map->sources_.begin(), map->sources_.end());
    absl::StatusOr<std::unique_ptr<MapOp>> fused = Create(input_, std::move(sources));
    return fused.ok() ? *std::move(fused) : nullptr;
  }

 private:
  MapOp(Signature input, std::vector<expr::MapSource> sources,
        std::unique_ptr<expr::Program> program)
      : input_(std::move(input)), sources_(std::move(sources)), program_(std::move(program)) {
    for (const Feature& feature : program_->output())
      row_bytes_.push_back(NumBytes(feature.type).value_or(0));
  }

  RowStatus RunProgram(int rows, absl::Span<const Column> in, absl::Span<Column> out, Arena& arena,
                       bool past_caches) const {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].row_bytes = row_bytes_[i];
      if (out[i].data == nullptr && row_bytes_[i] > 0)
        out[i].data = arena.Allocate(row_bytes_[i] * rows);
    }
    return program_->Run(rows, in, out, arena, past_caches);
  }

  const Signature input_;
  const std::vector<expr::MapSource> sources_;
  const std::unique_ptr<expr::Program> program_;
  std::vector<size_t> row_bytes_;
};

// Whether the outs are named by their paths.
absl::Status CheckStructure(const std::string& structure, const Signature& outs) {
  if (structure.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> paths = StructurePaths(structure);
  if (!paths.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("structure: ", paths.status().message()));
  }
  if (paths->size() != outs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("structure: expected one place for each out, ",
                                                   outs.size(), " in all, found ", paths->size()));
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    if ((*paths)[i] == outs[i].name) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("structure: expected place ", i, " to be \"", outs[i].name,
                     "\", as the out is called, found \"", (*paths)[i], "\""));
  }
  return absl::OkStatus();
}

// The address that begins a message about one of the expressions,
// `stage "map", column 7 of "x = y + 1": `; "" where there is none.
absl::string_view AddressOf(absl::string_view message, const expr::MapSource& source) {
  for (const std::vector<std::string>* texts : {&source.lets, &source.outs}) {
    for (const std::string& text : *texts) {
      const std::string quoted = absl::StrCat(" of \"", text, "\": ");
      const size_t found = message.find(quoted);
      if (found != absl::string_view::npos) return message.substr(0, found + quoted.size());
    }
  }
  return "";
}

// Why a map behind a batch is neither computed of its rows nor of whole batches. What has come
// further in the text is what its author meant: an operation that fails in both ways says how rows
// are written, and else it is what whole batches, as NumPy sees them, fail at.
absl::Status RefusedBothWays(const absl::Status& rows, const absl::Status& batches,
                             const expr::MapSource& source) {
  const absl::string_view of_rows = rows.message();
  const absl::string_view of_batches = batches.message();
  if (of_rows == of_batches) return rows;
  const absl::string_view address = AddressOf(of_rows, source);
  if (!address.empty() && AddressOf(of_batches, source) == address) {
    return absl::Status(
        rows.code(),
        absl::StrCat(of_rows, "; nor of whole batches: ", of_batches.substr(address.size())));
  }
  // The same expression need not be said twice: "nor row by row, column 7: ".
  const size_t text = address.find(" of \"");
  const size_t column = address.find("column ");
  if (!address.empty() && column < text &&
      absl::StrContains(of_batches, address.substr(text, address.size() - text))) {
    return absl::Status(batches.code(), absl::StrCat(of_batches, "; nor row by row, ",
                                                     address.substr(column, text - column), ": ",
                                                     of_rows.substr(address.size())));
  }
  return absl::Status(batches.code(), absl::StrCat(of_batches, "; nor row by row: ", of_rows));
}

const OpRegistration<v1::Map> kMap(
    "map",
    {.gives = Given::kOneEach,
     .keeps_elements = false,
     .expressions = {v1::Map::kLetFieldNumber, v1::Map::kOutFieldNumber}},
    [](const v1::Map& options, PlanBuilder& plan) -> absl::Status {
      // Padding is part of a batch and of none of its rows.
      if (plan.PadsRows()) {
        if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      }
      absl::StatusOr<expr::MapSource> source =
          ReadMapSource(options.constant(), options.let(), plan);
      if (!source.ok()) return source.status();
      source->outs.assign(options.out().begin(), options.out().end());
      if (source->outs.empty())
        return absl::InvalidArgumentError("expected at least one out, found none");
      absl::StatusOr<std::unique_ptr<MapOp>> op = MapOp::Create(plan.signature(), {*source});
      if (!op.ok() && plan.batched()) {
        // What does not treat rows one by one is computed of whole batches.
        const absl::Status row_by_row = op.status();
        if (absl::Status status = plan.EndBatches(); !status.ok()) return row_by_row;
        source->batched = false;
        op = MapOp::Create(plan.signature(), {*source});
        if (!op.ok()) return RefusedBothWays(row_by_row, op.status(), *source);
      }
      if (!op.ok()) return op.status();
      absl::Status status = CheckStructure(options.structure(), (*op)->output());
      if (!status.ok()) return status;
      plan.AddWork(*std::move(op), options.structure());
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
