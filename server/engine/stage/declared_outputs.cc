#include "server/engine/stage/declared_outputs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/dtype.h"
#include "nlohmann/json.hpp"
#include "server/engine/tensor/structure.h"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxThreads = 1024;

// InvalidArgument where numbers in strings of this output are none.
absl::Status CheckPacked(const v1::PythonOutput& output, const Feature& feature) {
  if (!output.has_packed()) return absl::OkStatus();
  const std::optional<DType> dtype = DTypeFromName(output.packed());
  if (dtype && *dtype != DType::kString && *dtype != DType::kBfloat16 &&
      feature.type == TensorType{DType::kString, {kUnknownSize}})
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "output \"", output.name(), "\": packed: expected NumPy's numbers in a string (?), ",
      "found ", output.packed(), " in ", TypeToString(feature.type)));
}

}  // namespace

absl::Status CheckExchanged(const Feature& feature, absl::string_view what) {
  const TensorType& type = feature.type;
  const bool is_plain = !type.packed() && type.form == RowForm::kPlain;
  if (is_plain && type.dtype != DType::kBfloat16) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " \"", feature.name, "\": expected numbers, flags or strings in a dense tensor, found ",
      TypeToString(type),
      is_plain ? "; cast it to float32" : "; a map before it may make it dense, or leave it out"));
}

absl::StatusOr<Signature> ReadDeclaredOutputs(const DeclaredOutputs& declared, bool counted) {
  if (declared.empty()) return absl::InvalidArgumentError("expected at least 1 output, found none");
  Signature outputs;
  for (const v1::PythonOutput& output : declared) {
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
    for (const absl::Status& status :
         {CheckExchanged(feature, "output"), CheckPacked(output, feature)})
      if (!status.ok()) return status;
    if (counted && (feature.type.shape.empty() || feature.type.shape[0] != kUnknownSize)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output \"", output.name(),
          "\": expected -1 as the first size, which counts what the function yields, found ",
          TypeToString(feature.type)));
    }
    outputs.push_back(std::move(feature));
  }
  return outputs;
}

absl::Status CheckDeclaredStructure(const std::string& structure, const Signature& outputs) {
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

Json ExchangedJson(const Signature& signature) {
  auto list = Json::array();
  for (const Feature& feature : signature) {
    auto shape = Json::array();
    for (const int64_t size : feature.type.shape) shape.push_back(size);
    list.push_back(
        {{"name", feature.name}, {"dtype", DTypeName(feature.type.dtype)}, {"shape", shape}});
  }
  return list;
}

Json ExchangedJson(const Signature& features, const DeclaredOutputs& outputs) {
  Json list = ExchangedJson(features);
  for (int i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].has_packed()) continue;
    list[i]["packed"] = outputs[i].packed();
    list[i]["packed_shape"] = outputs[i].packed_shape();
  }
  return list;
}

absl::StatusOr<Signature> ReadDeclaredFunction(const v1::PythonFunction& function, bool counted) {
  absl::StatusOr<Signature> outputs = ReadDeclaredOutputs(function.output(), counted);
  if (!outputs.ok()) return outputs.status();
  for (const absl::Status& status :
       {CheckDeclaredStructure(function.structure(), *outputs),
        function.has_threads() ? CheckFromOne("threads", function.threads(), kMaxThreads)
                               : absl::OkStatus(),
        function.has_timeout_ms() ? CheckFromOne("timeout_ms", function.timeout_ms(), INT32_MAX)
                                  : absl::OkStatus()}) {
    if (!status.ok()) return status;
  }
  return outputs;
}

Json FunctionJson(const v1::PythonFunction& function, const std::string& name) {
  return {{"name", name},
          {"seeds", !function.unseeded()},
          {"describes", function.describes()},
          {"threads", function.has_threads() ? function.threads() : 1},
          {"sets_threads", function.has_threads()},
          {"casts", function.casts()}};
}

absl::Status CheckFromOne(absl::string_view what, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": expected 1 to ", most, ", found ", value));
}

}  // namespace penstock
