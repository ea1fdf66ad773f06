#include "server/codec/json_paths.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// More keys than that are looked up.
constexpr size_t kFewKeys = 8;

}  // namespace

JsonPaths::JsonPaths(const std::vector<JsonField>& fields) {
  nodes_.emplace_back();
  for (size_t field = 0; field < fields.size(); ++field) {
    int node = 0;
    nodes_[0].below.push_back(field);
    for (const JsonStep& step : fields[field].steps) {
      node = Child(node, step);
      nodes_[node].below.push_back(field);
    }
    nodes_[node].here.push_back(field);
  }
  for (Node& node : nodes_) {
    node.is_text =
        !node.here.empty() && node.here.size() == node.below.size() &&
        std::all_of(node.here.begin(), node.here.end(), [&](size_t field) {
          return fields[field].type.dtype == DType::kString && fields[field].shape.empty();
        });
  }
  by_key_.resize(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].keys.size() <= kFewKeys) continue;
    for (const int child : nodes_[i].keys) by_key_[i].emplace(nodes_[child].step.key, child);
  }
}

int JsonPaths::Child(int parent, const JsonStep& step) {
  const Node& above = nodes_[parent];
  const bool is_key = step.kind == JsonStep::Kind::kKey;
  if (step.kind == JsonStep::Kind::kEach && above.each >= 0) return above.each;
  for (const int child : is_key ? above.keys : above.places) {
    if (nodes_[child].step == step) return child;
  }
  const auto made = static_cast<int>(nodes_.size());
  const size_t depth = above.depth + 1;
  const size_t level = above.level + (step.kind == JsonStep::Kind::kEach ? 1 : 0);
  if (step.kind == JsonStep::Kind::kEach) {
    nodes_[parent].each = made;
  } else {
    (is_key ? nodes_[parent].keys : nodes_[parent].places).push_back(made);
    if (is_key) nodes_[parent].key_sizes |= Node::SizeBit(step.key.size());
  }
  Node& node = nodes_.emplace_back();
  node.step = step;
  node.parent = parent;
  node.depth = depth;
  node.level = level;
  return made;
}

int JsonPaths::FindAnyKey(const Node& node, absl::string_view key, size_t* guess) const {
  const size_t count = node.keys.size();
  if (*guess >= count) *guess = 0;
  if (nodes_[node.keys[*guess]].step.key == key) return node.keys[(*guess)++];
  if (count > kFewKeys) {
    const auto& by_key = by_key_[&node - nodes_.data()];
    const auto found = by_key.find(key);
    return found == by_key.end() ? -1 : found->second;
  }
  for (size_t i = 0; i < count; ++i) {
    if (nodes_[node.keys[i]].step.key != key) continue;
    *guess = i + 1;
    return node.keys[i];
  }
  return -1;
}

std::string JsonPaths::PathTo(int index, const std::vector<int64_t>& places) const {
  std::vector<int> way;
  for (int node = index; node > 0; node = nodes_[node].parent) way.push_back(node);
  std::reverse(way.begin(), way.end());
  std::string path;
  for (const int node : way) {
    const Node& at = nodes_[node];
    if (at.step.kind == JsonStep::Kind::kEach) {
      absl::StrAppend(&path, "[", places[at.level], "]");
    } else {
      AppendJsonStep(at.step, path.empty(), &path);
    }
  }
  return path;
}

}  // namespace penstock
