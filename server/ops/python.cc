#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/dtype.h"
#include "base/memory_account.h"
#include "base/on_behalf.h"
#include "base/processors.h"
#include "nlohmann/json.hpp"
#include "server/engine/order/away_work_op.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/spec/drawn_seed.h"
#include "server/engine/stage/declared_outputs.h"
#include "server/engine/tensor/structure.h"
#include "server/python/function_file.h"
#include "server/python/pool.h"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxWorkers = 1024;
constexpr int kFunction = v1::Python::kFunctionFieldNumber;

// Which features of the element go where.
struct Choice {
  std::vector<int> input;  // to the function, in order
  std::vector<int> keep;   // on, in front of what it returns
};

// The same rows in memory of the arena: `in` may be gone when the function is done.
Column CopyOf(const TensorType& type, const Column& column, int rows, Arena* arena) {
  Column copy;
  if (column.rows == nullptr) {
    copy.row_bytes = column.row_bytes;
    copy.data = arena->Allocate(column.row_bytes * rows);
    if (copy.row_bytes > 0) std::memcpy(copy.data, column.data, column.row_bytes * rows);
    return copy;
  }
  auto* const places = arena->AllocateArray<RowBytes>(rows);
  for (int row = 0; row < rows; ++row) {
    const RowBytes& from = column.rows[row];
    uint8_t* const to = arena->Allocate(from.size);
    if (from.size > 0) std::memcpy(to, from.data, from.size);
    places[row] = {to, from.size};
  }
  copy.rows = places;
  if (column.dims != nullptr) {
    const size_t sizes = type.shape.size() * rows;
    auto* const dims = arena->AllocateArray<int64_t>(sizes);
    std::copy_n(column.dims, sizes, dims);
    copy.dims = dims;
  }
  return copy;
}

class PythonOp final : public AwayWorkOp {
 public:
  // `made`: what the function returns; `kept`: what stays in front of it.
  PythonOp(Signature input, const Signature& kept, Signature made, Choice choice,
           python::FunctionFile function, python::PoolOptions options)
      : output_(Joined(kept, made)),
        choice_(std::move(choice)),
        name_(options.name),
        workers_(options.workers),
        chooses_(options.chooses),
        pool_(std::move(function), python::SheetForm(std::move(input)),
              python::SheetForm(std::move(made)), std::move(options)) {}

  const Signature& output() const override { return output_; }
  // The generators of each row are keyed by what it is.
  bool draws() const override { return true; }
  const char* doing() const override { return "computing rows in Python"; }
  std::string place() const override { return name_; }

  void Begin(AwayRows* rows, Completion end) const override {
    try {
      for (size_t i = 0; i < choice_.keep.size(); ++i)
        rows->out[i] = CopyOf(output_[i].type, rows->in[choice_.keep[i]], rows->rows, rows->arena);
      // Behind the features comes each row's identity.
      const size_t inputs = choice_.input.size();
      auto* const in = rows->arena->AllocateArray<Column>(inputs + 1);
      for (size_t i = 0; i < inputs; ++i) in[i] = rows->in[choice_.input[i]];
      in[inputs] = rows->in.back();
      rows->in = {in, inputs + 1};
    } catch (const MemoryLimitError& error) {
      end.End(MemoryStatus(error));
      return;
    }
    rows->out.remove_prefix(choice_.keep.size());
    pool_.Begin(rows, std::move(end));
  }

  std::optional<AwayWorkers> workers() const override { return pool_.Workers(); }
  std::vector<AwaySpan> SpansSince(uint64_t monotonic_ns) const override {
    return pool_.SpansSince(monotonic_ns);
  }

  std::string Describe() const override {
    return absl::StrCat("Python function ", name_, " in up to ", workers_, " worker processes",
                        chooses_ ? ", as many as its rows need\n" : "\n");
  }

 private:
  static Signature Joined(Signature kept, const Signature& made) {
    kept.insert(kept.end(), made.begin(), made.end());
    return kept;
  }

  const Signature output_;
  const Choice choice_;
  const std::string name_;
  const int workers_;
  const bool chooses_;
  mutable python::Pool pool_;  // locks itself
};

// Which of the features these names are.
absl::StatusOr<std::vector<int>> Find(const google::protobuf::RepeatedPtrField<std::string>& names,
                                      absl::string_view what, const Signature& features) {
  std::vector<int> found;
  for (const std::string& name : names) {
    const auto at = std::find_if(features.begin(), features.end(),
                                 [&](const Feature& feature) { return feature.name == name; });
    if (at == features.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " \"", name, "\": the element has ", SignatureToString(features)));
    }
    const auto number = static_cast<int>(at - features.begin());
    found.push_back(number);
  }
  return found;
}

// Whether the pipeline is there to find out what a function returns. One like it follows.
bool Describes(const v1::PipelineSpec& spec) {
  return std::any_of(spec.stage().begin(), spec.stage().end(),
                     [](const v1::Stage& stage) { return stage.python().function().describes(); });
}

// As many arguments.
std::string TupleOf(size_t parts) { return Json(std::vector<std::nullptr_t>(parts)).dump(); }

const OpRegistration<v1::Python> kPython(
    "python",
    {.gives = Given::kOneEach,
     .seed = {kFunction, v1::PythonFunction::kSeedFieldNumber},
     .arrays = {kFunction, v1::PythonFunction::kFileFieldNumber},
     .without_effect = {{kFunction, v1::PythonFunction::kTimeoutMsFieldNumber},
                        {kFunction, v1::PythonFunction::kCodeFieldNumber},
                        {kFunction, v1::PythonFunction::kThreadsFieldNumber},
                        v1::Python::kWorkersFieldNumber,
                        v1::Python::kMaxRowsPerWorkerFieldNumber},
     .draws = true},
    [](const v1::Python& options, PlanBuilder& plan) -> absl::Status {
      const v1::PythonFunction& function = options.function();
      absl::StatusOr<Signature> outputs =
          ReadDeclaredFunction(function, options.yields() && !function.describes());
      if (!outputs.ok()) return outputs.status();
      if (!options.returns().empty()) {
        absl::StatusOr<std::vector<std::string>> returned = StructurePaths(options.returns());
        if (!returned.ok() || returned->size() != outputs->size()) {
          return absl::InvalidArgumentError(
              absl::StrCat("returns: expected a structure of ", outputs->size(),
                           " tensors, as many as there are outputs, found ", options.returns()));
        }
      }
      if (function.describes() &&
          *outputs != Signature{{(*outputs)[0].name, {DType::kString, {}}}}) {
        return absl::InvalidArgumentError(
            absl::StrCat("describes: expected one output, a string without axes, found ",
                         SignatureToString(*outputs)));
      }
      const int64_t workers =
          options.has_workers() ? options.workers() : ThreadsFor(UsableProcessors());
      for (const absl::Status& status :
           {CheckFromOne("workers", workers, kMaxWorkers),
            options.has_max_rows_per_worker()
                ? CheckFromOne("max_rows_per_worker", options.max_rows_per_worker(), INT64_MAX)
                : absl::OkStatus()}) {
        if (!status.ok()) return status;
      }
      // A function sees what a trainer would.
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      Choice choice;
      for (const auto& [names, what, to] : {std::tuple(&options.input(), "input", &choice.input),
                                            std::tuple(&options.keep(), "keep", &choice.keep)}) {
        absl::StatusOr<std::vector<int>> found = Find(*names, what, plan.signature());
        if (!found.ok()) return found.status();
        *to = *std::move(found);
      }
      for (const int i : choice.keep) {
        if (std::count(choice.keep.begin(), choice.keep.end(), i) == 1) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("keep \"", plan.signature()[i].name, "\" twice"));
      }
      if (!choice.keep.empty() && !function.structure().empty()) {
        return absl::InvalidArgumentError(
            "structure beside keep: the elements are dicts of what is kept and of the outputs");
      }
      const bool takes_parts = !choice.input.empty();
      for (size_t i = 0; !takes_parts && i < plan.signature().size(); ++i)
        choice.input.push_back(static_cast<int>(i));
      Signature input, kept;
      for (const int i : choice.input) input.push_back(plan.signature()[i]);
      for (const int i : choice.keep) kept.push_back(plan.signature()[i]);
      for (const Feature& feature : input) {
        if (absl::Status status = CheckExchanged(feature, "feature"); !status.ok()) return status;
      }
      for (const Feature& feature : kept) {
        for (const Feature& output : *outputs) {
          if (output.name != feature.name) continue;
          return absl::InvalidArgumentError(
              absl::StrCat("output \"", output.name, "\": keep has a feature of that name"));
        }
      }
      absl::StatusOr<python::FunctionFile> file =
          python::OpenFunctionFile(function.file(), function.code(), OnBehalf::User());
      if (!file.ok()) return file.status();
      const int64_t seed = function.has_seed() ? function.seed() : DrawSeed();
      plan.stage_spec().mutable_python()->mutable_function()->set_seed(seed);
      const std::string name = function.name().empty() ? "function" : function.name();
      std::string structure =
          function.structure().empty() ? DictStructure(*outputs) : function.structure();
      if (!options.returns().empty()) structure = options.returns();
      Json configuration = FunctionJson(function, name);
      configuration.update({
          {"inputs", ExchangedJson(input)},
          {"input_structure", takes_parts ? TupleOf(input.size()) : plan.structure()},
          {"outputs", ExchangedJson(*outputs, function.output())},
          {"output_structure", structure},
          {"key", plan.DrawKey(seed)},
          {"yields", options.yields()},
          {"lists", options.lists()},
          {"tensors", options.tensors()},
      });
      // Of each row's identity its path.
      input.push_back({"", {DType::kUint64, {}}});
      plan.AddWork(
          std::make_unique<PythonOp>(
              std::move(input), kept, *std::move(outputs), std::move(choice), *std::move(file),
              python::PoolOptions{.name = name,
                                  .configuration = configuration.dump(
                                      -1, ' ', false, Json::error_handler_t::replace),
                                  .workers = static_cast<int>(workers),
                                  .chooses = !options.has_workers(),
                                  .timeout_ms = function.timeout_ms(),
                                  .max_rows_per_worker = options.max_rows_per_worker(),
                                  // Nothing but its rows decides what such a function gives.
                                  .outlives = function.unseeded(),
                                  .lends = function.describes() ||
                                           (Describes(plan.spec()) && !function.unseeded() &&
                                            options.max_rows_per_worker() == 0),
                                  .threads = function.threads()}),
          function.structure());
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
