#include "server/engine/order/dataset.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kMaxBlockRows = 64;
constexpr size_t kBlockBytes = 800 << 10;
// What a value of unknown size counts as when the rows of a task are chosen: a string or a list, and what has more axes, such as an
// image.
constexpr size_t kStringBytes = 4 << 10;
constexpr size_t kImageBytes = 64 << 10;

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

OrderNode::OrderNode() = default;
OrderNode::~OrderNode() = default;

uint32_t WorkNode::FirstFile() const {
  if (kind == Kind::kLoad) return first_file;
  if (kind != Kind::kBranch) return inputs.front()->FirstFile();
  uint32_t lowest = UINT32_MAX;
  for (const std::unique_ptr<WorkNode>& input : inputs)
    lowest = std::min(lowest, input->FirstFile());
  return lowest;
}

uint64_t WorkNode::PathOf(const RecordRef* element) const {
  switch (kind) {
    case Kind::kLoad:
      return loader->Path(element[reference]);
    case Kind::kWork:
      return inputs[0]->PathOf(element);
    case Kind::kTuple: {
      uint64_t path = inputs[0]->PathOf(element);
      for (size_t i = 1; i < inputs.size(); ++i) path = MixPath(path, inputs[i]->PathOf(element));
      return path;
    }
    case Kind::kBranch:
      return inputs[BranchOf(element)]->PathOf(element);
  }
  return 0;
}

size_t WorkNode::BranchOf(const RecordRef* element) const {
  // The first reference that any branch looks at is the element's first.
  return std::upper_bound(first_files.begin(), first_files.end(), element[reference].file) -
         first_files.begin() - 1;
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

uint32_t WorkNode::LowestFile() const {
  if (kind == Kind::kLoad) return first_file;
  uint32_t lowest = UINT32_MAX;
  for (const std::unique_ptr<WorkNode>& input : inputs)
    lowest = std::min(lowest, input->LowestFile());
  return lowest;
}

void WorkNode::MoveReferences(uint32_t by) {
  reference += by;
  // What a section does with its own references is its own affair.
  if (kind == Kind::kLoad) return;
  for (const std::unique_ptr<WorkNode>& input : inputs) input->MoveReferences(by);
}

uint32_t BlockRows(size_t row_bytes) {
  const size_t fitting =
      std::clamp<size_t>(kBlockBytes / std::max<size_t>(row_bytes, 1), 1, kMaxBlockRows);
  uint32_t rows = 1;
  while (rows * 2 <= fitting) rows *= 2;
  return rows;
}

size_t EstimatedRowBytes(const Signature& signature) {
  size_t bytes = 0;
  for (const Feature& feature : signature) {
    if (const std::optional<int64_t> known = NumBytes(feature.type)) {
      // A sum that wraps is no harm: it chooses the size of a task.
      bytes += *known;
    } else if (feature.type.shape.size() > 1) {
      bytes += kImageBytes;
    } else {
      const size_t elements = std::max<int64_t>(NumElements(feature.type.shape).value_or(1), 1);
      bytes += kStringBytes * std::min(elements, kBlockBytes / kStringBytes);
    }
  }
  return bytes;
}

std::string DictStructure(const Signature& signature) {
  std::string out = "{";
  for (const Feature& feature : signature)
    absl::StrAppend(&out, out.size() > 1 ? "," : "", Quote(feature.name), ":null");
  return out + "}";
}

}  // namespace penstock
