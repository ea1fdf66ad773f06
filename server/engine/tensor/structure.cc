#include "server/engine/tensor/structure.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

constexpr size_t kMaxBytes = 64 << 10;
constexpr int kMaxDepth = 64;

absl::Status AddPaths(const nlohmann::ordered_json& node, const std::string& path, int depth,
                      std::vector<std::string>* paths) {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
  }
  if (node.is_null()) {
    paths->push_back(path.empty() ? "value" : path);
    return absl::OkStatus();
  }
  if (!node.is_structured()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected null, an array or an object, found ", node.type_name()));
  }
  const std::string prefix = path.empty() ? path : path + "/";
  for (const auto& item : node.items()) {
    absl::Status status = AddPaths(item.value(), prefix + item.key(), depth + 1, paths);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> StructurePaths(std::string_view structure) {
  if (structure.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("longer than limit: ", structure.size(), " > ", kMaxBytes, " bytes"));
  }
  int depth = 0;
  bool deep = false;
  // The depth is looked at while the text is parsed: taking down what was parsed is recursive.
  const auto watch = [&](int, nlohmann::ordered_json::parse_event_t event,
                         nlohmann::ordered_json&) {
    using Event = nlohmann::ordered_json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) ++depth;
    if (event == Event::object_end || event == Event::array_end) --depth;
    if (depth > kMaxDepth) deep = true;
    return depth <= kMaxDepth;
  };
  const auto node = nlohmann::ordered_json::parse(structure, watch, /*allow_exceptions=*/false);
  if (deep) return absl::InvalidArgumentError(absl::StrCat("nested deeper than ", kMaxDepth));
  if (node.is_discarded()) return absl::InvalidArgumentError("not JSON");
  std::vector<std::string> paths;
  absl::Status status = AddPaths(node, "", 0, &paths);
  if (!status.ok()) return status;
  return paths;
}

bool SameStructure(std::string_view a, std::string_view b) {
  // What the plan has is JSON of few levels; this kind of it sorts its keys.
  return a == b || nlohmann::json::parse(a, nullptr, /*allow_exceptions=*/false) ==
                       nlohmann::json::parse(b, nullptr, /*allow_exceptions=*/false);
}

absl::StatusOr<std::string> StructureComponent(std::string_view structure, int64_t i) {
  // What the plan has is JSON of few levels already.
  const auto node = nlohmann::ordered_json::parse(structure, nullptr, /*allow_exceptions=*/false);
  if (!node.is_array() || i < 0 || static_cast<uint64_t>(i) >= node.size())
    return absl::InvalidArgumentError(absl::StrCat("no component ", i));
  return node[static_cast<size_t>(i)].dump();
}

}  // namespace penstock
