#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/dtype.h"
#include "base/processors.h"
#include "nlohmann/json.hpp"
#include "server/engine/order/away_work_op.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/spec/drawn_seed.h"
#include "server/engine/tensor/structure.h"
#include "server/python/function_file.h"
#include "server/python/pool.h"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxWorkers = 1024;

class PythonOp final : public AwayWorkOp {
 public:
  PythonOp(Signature input, Signature output, python::FunctionFile function,
           python::PoolOptions options)
      : output_(std::move(output)),
        name_(options.name),
        workers_(options.workers),
        pool_(std::move(function), python::SheetForm(std::move(input)), python::SheetForm(output_),
              std::move(options)) {}

  const Signature& output() const override { return output_; }
  // The generators of each row are keyed by what it is.
  bool draws() const override { return true; }
  const char* doing() const override { return "computing rows in Python"; }
  std::string place() const override { return name_; }

  void Begin(AwayRows* rows, Completion end) const override { pool_.Begin(rows, std::move(end)); }

  std::string Describe() const override {
    return absl::StrCat("Python function ", name_, " in up to ", workers_, " worker processes\n");
  }

 private:
  const Signature output_;
  const std::string name_;
  const int workers_;
  mutable python::Pool pool_;  // locks itself
};

// Features that can be laid before a worker, or taken from one.
absl::Status CheckFeature(const Feature& feature, absl::string_view what) {
  const TensorType& type = feature.type;
  const bool is_plain = !type.packed() && type.form == RowForm::kPlain;
  if (is_plain && type.dtype != DType::kBfloat16) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " \"", feature.name, "\": expected numbers, flags or strings in a dense tensor, found ",
      TypeToString(type),
      is_plain ? "; cast it to float32"
               : "; a map in front of it may make it dense, or leave it out"));
}

absl::StatusOr<Signature> ReadOutputs(const v1::Python& options) {
  if (options.output().empty())
    return absl::InvalidArgumentError("expected at least 1 output, found none");
  Signature outputs;
  for (const v1::PythonOutput& output : options.output()) {
    for (const Feature& other : outputs) {
      if (other.name == output.name())
        return absl::InvalidArgumentError(absl::StrCat("output \"", output.name(), "\" twice"));
    }
    const std::optional<DType> dtype = DTypeFromName(output.dtype());
    if (output.name().empty() || !dtype) {
      return absl::InvalidArgumentError(absl::StrCat("output \"", output.name(),
                                                     "\": expected a name and a NumPy type or "
                                                     "\"string\", found the type \"",
                                                     output.dtype(), "\""));
    }
    Feature feature{output.name(), {*dtype, {}}};
    for (const int64_t size : output.shape()) {
      if (size < -1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "output \"", output.name(), "\": expected sizes from 0 on, or -1, found ", size));
      }
      feature.type.shape.push_back(size == -1 ? kUnknownSize : size);
    }
    if (!HasUnknownSize(feature.type.shape) && *dtype != DType::kString &&
        NumBytes(feature.type).value_or(INT64_MAX) > UINT32_MAX) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output \"", output.name(), "\": larger than limit: ", TypeToString(feature.type), " > ",
          UINT32_MAX, " bytes"));
    }
    if (absl::Status status = CheckFeature(feature, "output"); !status.ok()) return status;
    outputs.push_back(std::move(feature));
  }
  return outputs;
}

absl::Status CheckStructure(const std::string& structure, const Signature& outputs) {
  if (structure.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> paths = StructurePaths(structure);
  if (!paths.ok())
    return absl::InvalidArgumentError(absl::StrCat("structure: ", paths.status().message()));
  for (size_t i = 0; i < std::max(paths->size(), outputs.size()); ++i) {
    const std::string found = i < outputs.size() ? outputs[i].name : "no output";
    const std::string expected = i < paths->size() ? (*paths)[i] : "no place";
    if (found != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("structure: expected output ", i, " to be ", expected, ", found ", found));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRange(absl::string_view what, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": expected 1 to ", most, ", found ", value));
}

Json FeaturesJson(const Signature& signature) {
  auto list = Json::array();
  for (const Feature& feature : signature) {
    auto shape = Json::array();
    for (const int64_t size : feature.type.shape) shape.push_back(size);
    list.push_back(
        {{"name", feature.name}, {"dtype", DTypeName(feature.type.dtype)}, {"shape", shape}});
  }
  return list;
}

const OpRegistration<v1::Python> kPython(
    "python",
    {.gives = Given::kOneEach,
     .seed = v1::Python::kSeedFieldNumber,
     .arrays = v1::Python::kFunctionFieldNumber,
     .without_effect = {v1::Python::kTimeoutMsFieldNumber, v1::Python::kWorkersFieldNumber,
                        v1::Python::kMaxRowsPerWorkerFieldNumber, v1::Python::kCodeFieldNumber,
                        v1::Python::kThreadsFieldNumber},
     .draws = true},
    [](const v1::Python& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<Signature> outputs = ReadOutputs(options);
      if (!outputs.ok()) return outputs.status();
      if (absl::Status status = CheckStructure(options.structure(), *outputs); !status.ok())
        return status;
      if (options.describes() &&
          *outputs != Signature{{(*outputs)[0].name, {DType::kString, {}}}}) {
        return absl::InvalidArgumentError(
            absl::StrCat("describes: expected one output, a string without axes, found ",
                         SignatureToString(*outputs)));
      }
      const int64_t workers =
          options.has_workers() ? options.workers() : ThreadsFor(UsableProcessors());
      for (const absl::Status& status :
           {CheckRange("workers", workers, kMaxWorkers),
            options.has_threads() ? CheckRange("threads", options.threads(), kMaxWorkers)
                                  : absl::OkStatus(),
            options.has_timeout_ms() ? CheckRange("timeout_ms", options.timeout_ms(), INT32_MAX)
                                     : absl::OkStatus(),
            options.has_max_rows_per_worker()
                ? CheckRange("max_rows_per_worker", options.max_rows_per_worker(), INT64_MAX)
                : absl::OkStatus()}) {
        if (!status.ok()) return status;
      }
      // A function sees what a trainer would.
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      for (const Feature& feature : plan.signature()) {
        if (absl::Status status = CheckFeature(feature, "feature"); !status.ok()) return status;
      }
      absl::StatusOr<python::FunctionFile> function = python::OpenFunctionFile(options.function());
      if (!function.ok()) return function.status();
      const int64_t seed = options.has_seed() ? options.seed() : DrawSeed();
      plan.stage_spec().mutable_python()->set_seed(seed);
      const std::string structure =
          options.structure().empty() ? DictStructure(*outputs) : options.structure();
      const Json configuration = {
          {"inputs", FeaturesJson(plan.signature())},
          {"input_structure", plan.structure()},
          {"outputs", FeaturesJson(*outputs)},
          {"output_structure", structure},
          {"key", plan.DrawKey(seed)},
          {"seeds", !options.unseeded()},
          {"name", options.name().empty() ? "function" : options.name()},
          {"describes", options.describes()},
          {"threads", options.has_threads() ? options.threads() : 1},
          {"sets_threads", options.has_threads()},
      };
      Signature input = plan.signature();
      // Of each row's identity its path.
      input.push_back({"", {DType::kUint64, {}}});
      plan.AddWork(
          std::make_unique<PythonOp>(
              std::move(input), *std::move(outputs), *std::move(function),
              python::PoolOptions{.name = options.name().empty() ? "function" : options.name(),
                                  .configuration = configuration.dump(
                                      -1, ' ', false, Json::error_handler_t::replace),
                                  .workers = static_cast<int>(workers),
                                  .timeout_ms = options.timeout_ms(),
                                  .max_rows_per_worker = options.max_rows_per_worker()}),
          options.structure());
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
