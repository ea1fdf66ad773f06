#include "server/expr/shuffle_pattern.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace penstock::expr {
namespace {

using kernels::kShuffleChunk;
using kernels::kShuffleWindowsMax;

// Where each byte of a chunk lies in the row.
using Bytes = std::array<int32_t, kShuffleChunk>;

// The starts of the fewest vectors in which they all lie, none of which goes beyond the row.
std::vector<int32_t> WindowsOf(Bytes bytes, int32_t last_start) {
  std::sort(bytes.begin(), bytes.end());
  std::vector<int32_t> starts;
  for (const int32_t byte : bytes) {
    if (starts.empty() || byte >= starts.back() + static_cast<int32_t>(kShuffleChunk)) {
      starts.push_back(std::min(byte, last_start));
    }
  }
  return starts;
}

}  // namespace

std::unique_ptr<ShufflePattern> ShufflePattern::MakeRepeated(const std::vector<int32_t>& source,
                                                             size_t element_bytes,
                                                             size_t in_elements) {
  const size_t per_chunk = kShuffleChunk / element_bytes;
  if (source.size() <= per_chunk) return nullptr;
  size_t period = 1;
  int32_t shift = 0;
  for (; period <= per_chunk; ++period) {
    shift = source[period] - source[0];
    bool repeated = shift > 0;
    for (size_t i = period; repeated && i < source.size(); ++i) {
      repeated = source[i] == source[i - period] + shift;
    }
    if (repeated) break;
  }
  if (period > per_chunk) return nullptr;
  // As many periods as fit a vector on either side.
  size_t periods = per_chunk / period;
  int32_t least = 0;
  for (; periods > 0; --periods) {
    const auto end = source.begin() + static_cast<ptrdiff_t>(periods * period);
    const auto [low, high] = std::minmax_element(source.begin(), end);
    least = *low;
    if (static_cast<size_t>(*high - *low) < per_chunk) break;
  }
  const size_t elements = periods * period;
  // Vectors of few bytes gain nothing over whole ones of two windows.
  if (elements * element_bytes * 4 < kShuffleChunk * 3) return nullptr;
  std::unique_ptr<ShufflePattern> pattern(new ShufflePattern);
  kernels::ByteRepeatTable& repeat = pattern->repeat_;
  repeat.in_first = static_cast<size_t>(least) * element_bytes;
  repeat.in_step = static_cast<size_t>(shift) * periods * element_bytes;
  repeat.out_step = elements * element_bytes;
  for (size_t byte = 0; byte < kShuffleChunk; ++byte) {
    const size_t element = byte / element_bytes;
    repeat.shuffle[byte] =
        element < elements
            ? static_cast<uint8_t>(static_cast<size_t>(source[element] - least) * element_bytes +
                                   byte % element_bytes)
            : 0x80;
  }
  // No vector is read beyond the row.
  const size_t readable = in_elements * element_bytes - repeat.in_first;
  if (readable < kShuffleChunk) return nullptr;
  repeat.chunks =
      std::min(source.size() / elements, (readable - kShuffleChunk) / repeat.in_step + 1);
  pattern->elements_ = repeat.chunks * elements;
  return pattern;
}

std::unique_ptr<ShufflePattern> ShufflePattern::Make(const std::vector<int32_t>& source,
                                                     size_t element_bytes, size_t in_elements) {
  const size_t in_bytes = in_elements * element_bytes;
  const size_t per_chunk = kShuffleChunk / element_bytes;
  // A window costs what two elements do.
  const size_t windows_max = std::min(per_chunk / 2, kShuffleWindowsMax);
  if (source.size() < per_chunk || in_bytes < kShuffleChunk || windows_max == 0) return nullptr;
  const auto last_start = static_cast<int32_t>(in_bytes - kShuffleChunk);
  if (auto repeated = MakeRepeated(source, element_bytes, in_elements); repeated != nullptr)
    return repeated;

  std::unique_ptr<ShufflePattern> pattern(new ShufflePattern);
  const size_t chunks = source.size() / per_chunk;
  std::vector<Bytes> bytes(chunks);
  std::vector<std::vector<int32_t>> starts(chunks);
  size_t windows = 1;
  for (size_t i = 0; i < chunks; ++i) {
    for (size_t byte = 0; byte < kShuffleChunk; ++byte) {
      const size_t element = i * per_chunk + byte / element_bytes;
      bytes[i][byte] = static_cast<int32_t>(static_cast<size_t>(source[element]) * element_bytes +
                                            byte % element_bytes);
    }
    starts[i] = WindowsOf(bytes[i], last_start);
    windows = std::max(windows, starts[i].size());
    if (windows > windows_max) return nullptr;
  }

  std::map<std::pair<std::vector<int32_t>, std::vector<uint8_t>>, int32_t> known;
  for (size_t i = 0; i < chunks; ++i) {
    const int32_t base = starts[i].front();
    // A window that a chunk does not need reads its first one once more.
    std::vector<int32_t> offsets(windows, 0);
    std::vector<uint8_t> shuffle(windows * kShuffleChunk, 0x80);
    for (size_t w = 0; w < starts[i].size(); ++w) offsets[w] = starts[i][w] - base;
    for (size_t byte = 0; byte < kShuffleChunk; ++byte) {
      const auto after = std::upper_bound(starts[i].begin(), starts[i].end(), bytes[i][byte]);
      const auto w = static_cast<size_t>(after - starts[i].begin()) - 1;
      shuffle[w * kShuffleChunk + byte] = static_cast<uint8_t>(bytes[i][byte] - starts[i][w]);
    }
    const auto id = static_cast<int32_t>(known.size());
    const auto [found, fresh] = known.emplace(std::pair(offsets, shuffle), id);
    if (fresh) {
      pattern->offsets_.insert(pattern->offsets_.end(), offsets.begin(), offsets.end());
      pattern->shuffles_.insert(pattern->shuffles_.end(), shuffle.begin(), shuffle.end());
    }
    pattern->chunks_.push_back({base, found->second});
  }
  pattern->elements_ = chunks * per_chunk;
  pattern->table_ = {windows, chunks, pattern->chunks_.data(), pattern->offsets_.data(),
                     pattern->shuffles_.data()};
  return pattern;
}

}  // namespace penstock::expr
