#include "server/engine/order/dataset.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kMaxBlockRows = 64;
constexpr size_t kBlockBytes = 800 << 10;
// What others compute goes through no op of this processor's, and there is a wake-up on both sides
// for each part of it.
constexpr size_t kAwayBlockBytes = 16 * kBlockBytes;
// What a value of unknown size counts as when the rows of a task are chosen: a string or a list,
// and what has more axes, such as an image.
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
  if (kind == Kind::kWork) return inputs[0]->PathOf(element);
  if (kind == Kind::kBranch) return inputs[BranchOf(element)]->PathOf(element);
  uint64_t path = PathWithoutMarks(element);
  for (const uint32_t reference_of_mark : marks) {
    const uint64_t mark = element[reference_of_mark].offset;
    if (mark != 0) path = MixPath(path, mark);
  }
  return path;
}

uint64_t WorkNode::PathWithoutMarks(const RecordRef* element) const {
  switch (kind) {
    case Kind::kLoad:
      return loader->Path(element[reference]);
    case Kind::kWork:
      return inputs[0]->PathWithoutMarks(element);
    case Kind::kTuple: {
      uint64_t path = inputs[0]->PathWithoutMarks(element);
      for (size_t i = 1; i < inputs.size(); ++i)
        path = MixPath(path, inputs[i]->PathWithoutMarks(element));
      return path;
    }
    case Kind::kBranch:
      return inputs[BranchOf(element)]->PathWithoutMarks(element);
  }
  return 0;
}

namespace {

// A loader of another tree.
class BorrowedLoader final : public ColumnLoader {
 public:
  explicit BorrowedLoader(const ColumnLoader& loader) : loader_(loader) {}
  const Signature& output() const override { return loader_.output(); }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    return loader_.Load(rows, files, out, arena);
  }
  uint64_t Path(const RecordRef& reference) const override { return loader_.Path(reference); }

 private:
  const ColumnLoader& loader_;
};

std::unique_ptr<WorkNode> CopyPaths(const WorkNode& node) {
  auto copy = std::make_unique<WorkNode>();
  copy->kind = node.kind;
  copy->reference = node.reference;
  copy->first_files = node.first_files;
  copy->marks = node.marks;
  if (node.kind == WorkNode::Kind::kLoad) {
    copy->loader = std::make_unique<BorrowedLoader>(*node.loader);
    return copy;
  }
  for (const std::unique_ptr<WorkNode>& input : node.inputs)
    copy->inputs.push_back(CopyPaths(*input));
  return copy;
}

}  // namespace

std::shared_ptr<const WorkNode> WorkNode::PathsOnly() const { return CopyPaths(*this); }

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
  for (uint32_t& mark : marks) mark += by;
  // What a section does with its own references is its own affair.
  if (kind == Kind::kLoad) return;
  for (const std::unique_ptr<WorkNode>& input : inputs) input->MoveReferences(by);
}

uint32_t BlockRows(size_t row_bytes, bool are_away) {
  const size_t block_bytes = are_away ? kAwayBlockBytes : kBlockBytes;
  const size_t fitting =
      std::clamp<size_t>(block_bytes / std::max<size_t>(row_bytes, 1), 1, kMaxBlockRows);
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
