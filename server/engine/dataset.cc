#include "server/engine/dataset.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// A JSON string. Names are UTF-8 already, or were refused.
std::string Quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&out, "\\u00", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

uint32_t WorkNode::FirstFile() const {
  if (kind == Kind::kLoad) return first_file;
  if (kind != Kind::kBranch) return inputs.front()->FirstFile();
  uint32_t lowest = UINT32_MAX;
  for (const std::unique_ptr<WorkNode>& input : inputs)
    lowest = std::min(lowest, input->FirstFile());
  return lowest;
}

const WorkNode* WorkNode::SourceOf(uint32_t file) const {
  if (kind == Kind::kLoad) return first_file <= file ? this : nullptr;
  const WorkNode* nearest = nullptr;
  for (const std::unique_ptr<WorkNode>& input : inputs) {
    const WorkNode* found = input->SourceOf(file);
    if (found != nullptr && (nearest == nullptr || found->first_file > nearest->first_file))
      nearest = found;
  }
  return nearest;
}

void WorkNode::MoveReferences(uint32_t by) {
  reference += by;
  for (const std::unique_ptr<WorkNode>& input : inputs) input->MoveReferences(by);
}

std::string DictStructure(const Signature& signature) {
  std::string out = "{";
  for (const Feature& feature : signature)
    absl::StrAppend(&out, out.size() > 1 ? "," : "", Quote(feature.name), ":null");
  return out + "}";
}

}  // namespace penstock
