#include "server/expr/bit_pattern.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace penstock::expr {
namespace {

// What an element is when its bit is clear and when it is set.
struct Choice {
  const Node* zero = nullptr;  // constants of the node's shape
  const Node* one = nullptr;
  std::vector<int32_t> index;
};

// Follows a value back to the bits. Every step is done twice on constants, so whatever NumPy would
// compute is what comes out.
class Tracer {
 public:
  explicit Tracer(Graph& graph) : graph_(graph) {}

  // nullopt: two different bits meet.
  absl::StatusOr<std::optional<Choice>> Trace(const Node& node) {
    // What is used many times is followed once: sums of sums would take time that doubles with
    // each.
    const auto known = traced_.find(&node);
    if (known != traced_.end()) return known->second;
    auto traced = TraceAnew(node);
    if (traced.ok()) traced_.emplace(&node, *traced);
    return traced;
  }

 private:
  absl::StatusOr<std::optional<Choice>> TraceAnew(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kRow: {
        Choice choice;
        const auto elements = static_cast<size_t>(node.elements());
        for (auto& [side, bit] : {std::pair(&choice.zero, 0), std::pair(&choice.one, 1)}) {
          auto constant = graph_.Constant(node.type, std::vector<uint8_t>(elements, bit), false);
          if (!constant.ok()) return constant.status();
          *side = *constant;
        }
        choice.index.resize(elements);
        for (size_t i = 0; i < elements; ++i) choice.index[i] = static_cast<int32_t>(i);
        return choice;
      }
      case Node::Kind::kView:
        return TraceView(node);
      default:
        return TraceElementwise(node);
    }
  }

  absl::StatusOr<std::optional<Choice>> TraceView(const Node& node) {
    auto traced = Trace(*node.arguments[0]);
    if (!traced.ok() || !*traced) return traced;
    Choice& choice = **traced;
    for (const Node** side : {&choice.zero, &choice.one}) {
      auto view = graph_.View(*side, node.type.shape, node.source);
      if (!view.ok()) return view.status();
      *side = *view;
    }
    if (!node.source.empty()) {
      std::vector<int32_t> index(node.source.size());
      for (size_t i = 0; i < index.size(); ++i) index[i] = choice.index[node.source[i]];
      choice.index = std::move(index);
    }
    return traced;
  }

  absl::StatusOr<std::optional<Choice>> TraceElementwise(const Node& node) {
    Choice result;
    std::vector<const Node*> zeros;
    std::vector<const Node*> ones;
    for (const Node* argument : node.arguments) {
      if (argument->is_constant()) {
        zeros.push_back(argument);
        ones.push_back(argument);
        continue;
      }
      auto traced = Trace(*argument);
      if (!traced.ok() || !*traced) return traced;
      if (!result.index.empty() && result.index != (*traced)->index) {
        return std::optional<Choice>();
      }
      result.index = std::move((*traced)->index);
      zeros.push_back((*traced)->zero);
      ones.push_back((*traced)->one);
    }
    auto zero = graph_.Elementwise(*node.function, zeros, node.type);
    if (!zero.ok()) return zero.status();
    auto one = graph_.Elementwise(*node.function, ones, node.type);
    if (!one.ok()) return one.status();
    result.zero = *zero;
    result.one = *one;
    return std::optional<Choice>(std::move(result));
  }

  Graph& graph_;
  std::map<const Node*, std::optional<Choice>> traced_;
};

// The windows of one chunk: greedily, each begins at the lowest byte not yet covered.
std::vector<int32_t> WindowsOf(const int32_t* index, size_t count) {
  std::vector<int32_t> bytes;
  for (size_t i = 0; i < count; ++i) bytes.push_back(index[i] / 8);
  std::sort(bytes.begin(), bytes.end());
  std::vector<int32_t> windows;
  for (const int32_t byte : bytes) {
    if (windows.empty() || byte >= windows.back() + 16) windows.push_back(byte);
  }
  return windows;
}

bool IsZero(const std::vector<uint8_t>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<BitPattern>> BitPattern::Make(Graph& graph, const Node& node) {
  auto traced = Tracer(graph).Trace(node);
  if (!traced.ok()) return traced.status();
  if (!*traced) return std::unique_ptr<BitPattern>();
  auto pattern = std::make_unique<BitPattern>();
  pattern->index_ = std::move((*traced)->index);
  pattern->one_ = (*traced)->one->data;
  pattern->zero_ = (*traced)->zero->data;
  pattern->BuildTables(DTypeSize(node.type.dtype));
  return pattern;
}

// Whether element i + period looks like element i, a whole number of bytes further on.
bool BitPattern::Repeats(size_t period, size_t element_bytes) const {
  const int32_t shift = index_[period] - index_[0];
  if (shift % 8 != 0 || shift < 0) return false;
  for (size_t i = period; i < index_.size(); ++i) {
    if (index_[i] - index_[i - period] != shift) return false;
  }
  return ConstantsRepeat(period, element_bytes);
}

bool BitPattern::ConstantsRepeat(size_t period, size_t element_bytes) const {
  const size_t shift = period * element_bytes;
  return std::memcmp(one_.data(), one_.data() + shift, one_.size() - shift) == 0 &&
         std::memcmp(zero_.data(), zero_.data() + shift, zero_.size() - shift) == 0;
}

// Only short periods help the kernel.
size_t BitPattern::ConstantPeriod(size_t element_bytes) const {
  const size_t longest = std::min(one_.size() / element_bytes, 3 * kernels::kMaxBitChunk);
  for (size_t period = 1; period <= longest; ++period) {
    if (ConstantsRepeat(period, element_bytes)) return period;
  }
  return 0;
}

BitPattern::Layout BitPattern::LayoutFor(size_t chunk, size_t element_bytes) const {
  const size_t elements = index_.size();
  Layout layout;
  layout.chunk = chunk;
  layout.period_chunks = (elements + chunk - 1) / chunk;
  for (size_t period = chunk; period < elements; period += chunk) {
    if (!Repeats(period, element_bytes)) continue;
    layout.period_chunks = period / chunk;
    layout.period_bytes = static_cast<size_t>(index_[period] - index_[0]) / 8;
    break;
  }
  for (size_t c = 0; c < layout.period_chunks; ++c) {
    layout.starts.push_back(
        WindowsOf(index_.data() + c * chunk, std::min(chunk, elements - c * chunk)));
    layout.windows = std::max(layout.windows, layout.starts.back().size());
  }
  return layout;
}

const uint8_t* BitPattern::Aligned(const std::vector<uint8_t>& bytes) {
  uint8_t* copy = tables_.Allocate(bytes.size());
  std::memcpy(copy, bytes.data(), bytes.size());
  return copy;
}

void BitPattern::BuildTables(size_t element_bytes) {
  const size_t elements = index_.size();
  Layout layout = LayoutFor(kernels::kMinBitChunk, element_bytes);
  const size_t wide = kernels::BitSelectVectorBytes();
  if (wide > kernels::kMinBitChunk && elements >= 4 * wide) {
    // Fewer lookups for the same outputs.
    Layout other = LayoutFor(wide, element_bytes);
    if (other.windows * kernels::kMinBitChunk <= layout.windows * wide) layout = std::move(other);
  }
  const size_t chunk = layout.chunk;
  const size_t chunks = layout.period_chunks;
  const size_t windows = layout.windows;
  std::vector<uint8_t> shuffle(chunks * windows * chunk, 0x80);
  std::vector<uint8_t> mask(chunks * chunk, 0);
  offset_.resize(chunks * windows);
  for (size_t c = 0; c < chunks; ++c) {
    const std::vector<int32_t>& starts = layout.starts[c];
    for (size_t w = 0; w < windows; ++w) {
      // A chunk that needs fewer windows reads its first again and takes nothing from it.
      offset_[c * windows + w] = starts[w < starts.size() ? w : 0];
    }
    for (size_t i = 0; i < chunk && c * chunk + i < elements; ++i) {
      const int32_t bit = index_[c * chunk + i];
      size_t w = 0;
      while (bit / 8 >= starts[w] + 16) ++w;
      shuffle[(c * windows + w) * chunk + i] = static_cast<uint8_t>(bit / 8 - starts[w]);
      mask[c * chunk + i] = static_cast<uint8_t>(0x80 >> bit % 8);
    }
  }
  FindWords(element_bytes);
  // Whole chunks are loaded, also the last one. Constants of one period suffice.
  one_.resize(chunks * chunk * element_bytes);
  zero_.resize(one_.size());

  table_.element_bytes = element_bytes;
  table_.elements = elements;
  table_.chunk = chunk;
  table_.period_chunks = chunks;
  table_.period_bytes = layout.period_bytes;
  table_.windows = windows;
  table_.offset = offset_.data();
  table_.shuffle = Aligned(shuffle);
  table_.mask = Aligned(mask);
  table_.one = Aligned(one_);
  table_.zero = IsZero(zero_) ? nullptr : Aligned(zero_);
  table_.constant_period = ConstantPeriod(element_bytes);
  kernel_ = kernels::FindBitSelect();
}

bool BitPattern::LieInWord(size_t count, size_t word_bytes, size_t* first) const {
  const auto [least, most] = std::minmax_element(index_.begin(), index_.begin() + count);
  *first = static_cast<size_t>(*least) / 8;
  return static_cast<size_t>(*most) / 8 < *first + word_bytes;
}

void BitPattern::FindWords(size_t element_bytes) {
  const size_t elements = index_.size();
  const size_t lanes = kernels::BitSelectVectorBytes() / element_bytes;
  if (element_bytes < 4 || !IsZero(zero_)) return;
  for (size_t count = lanes; count <= kernels::kMaxWordVectors * lanes && count < elements;
       count += lanes) {
    size_t first = 0;
    if (elements % count != 0 || !LieInWord(count, element_bytes, &first) ||
        !Repeats(count, element_bytes)) {
      continue;
    }
    std::vector<uint8_t> mask(count * element_bytes);
    for (size_t i = 0; i < count; ++i) {
      const auto bit = static_cast<size_t>(index_[i]);
      mask[i * element_bytes + bit / 8 - first] = static_cast<uint8_t>(0x80 >> bit % 8);
    }
    table_.word_elements = count;
    table_.word_offset = first;
    table_.word_stride = static_cast<size_t>(index_[count] - index_[0]) / 8;
    table_.word_mask = Aligned(mask);
    table_.word_one = Aligned({one_.begin(), one_.begin() + count * element_bytes});
    return;
  }
}

}  // namespace penstock::expr
