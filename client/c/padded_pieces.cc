#include "client/c/padded_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ring/segment_plan.h"

namespace penstock_client {
namespace {

using penstock::ring::TensorEntry;

// More than memory can hold.
constexpr uint64_t kTooMany = uint64_t{1} << 56;

uint64_t CountElements(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(size), &count) || count > kTooMany)
      return size == 0 ? 0 : kTooMany;
  }
  return count;
}

// Calls visit(first, count, fills) for each innermost run of `shape` that the piece's rows become:
// `count` elements of the piece from number `first` on, and behind them `fills` that it has not.
// REQUIRES: `shape` has elements, and two axes or more.
template <typename Visit>
bool ForEachRun(const PaddedPiece& piece, const std::vector<int64_t>& shape, const Visit& visit) {
  const size_t last = shape.size() - 1;
  std::vector<int64_t> index(last, 0);
  while (index[0] < piece[0]) {
    bool has_elements = true;
    int64_t first = 0;
    for (size_t axis = 0; axis < last; ++axis) {
      has_elements = has_elements && index[axis] < piece[axis];
      first = has_elements ? (first + index[axis]) * piece[axis + 1] : 0;
    }
    const int64_t count = has_elements ? piece[last] : 0;
    if (!visit(static_cast<uint64_t>(first), static_cast<uint64_t>(count),
               static_cast<uint64_t>(shape[last] - count)))
      return false;
    size_t axis = last - 1;
    while (++index[axis] == shape[axis] && axis > 0) index[axis--] = 0;
  }
  return true;
}

// What a consumer of strings writes: their bytes, and where each ends.
struct Strings {
  AlignedBytes bytes, offsets;

  bool Add(const uint8_t* from, uint64_t size) {
    if (!bytes.Append(from, size)) return false;
    const auto end = static_cast<int64_t>(bytes.bytes());
    return offsets.Append(&end, sizeof end);
  }
};

bool PadNumbers(const std::vector<int64_t>& shape, const TensorEntry& entry,
                const std::vector<PaddedPiece>& pieces, AlignedBytes* values) {
  const uint64_t element_bytes = penstock::ring::ElementBytes(entry.dtype);
  AlignedBytes laid;
  if (!laid.Reserve(CountElements(shape) * element_bytes)) return false;
  std::vector<uint8_t> filling(static_cast<size_t>(shape.back()) * element_bytes);
  for (size_t i = 0; i < filling.size() && entry.padding_bytes == element_bytes; ++i)
    filling[i] = entry.padding[i % element_bytes];
  const uint8_t* from = values->data();
  for (const PaddedPiece& piece : pieces) {
    const auto visit = [&](uint64_t first, uint64_t count, uint64_t fills) {
      return laid.Append(from + first * element_bytes, count * element_bytes) &&
             laid.Append(filling.data(), fills * element_bytes);
    };
    if (!ForEachRun(piece, shape, visit)) return false;
    from += CountElements(piece) * element_bytes;
  }
  *values = std::move(laid);
  return true;
}

bool PadStrings(const std::vector<int64_t>& shape, const TensorEntry& entry,
                const std::vector<PaddedPiece>& pieces, AlignedBytes* values, AlignedBytes* offsets,
                bool* inside) {
  const int64_t zero = 0;
  Strings laid;
  if (!laid.offsets.Reserve((CountElements(shape) + 1) * sizeof zero) ||
      !laid.bytes.Reserve(values->bytes()) || !laid.offsets.Append(&zero, sizeof zero))
    return false;
  const auto* from = reinterpret_cast<const int64_t*>(offsets->data());
  for (const PaddedPiece& piece : pieces) {
    const auto visit = [&](uint64_t first, uint64_t count, uint64_t fills) {
      for (uint64_t i = first; i < first + count; ++i) {
        const int64_t begin = from[i], end = from[i + 1];
        const bool fits =
            0 <= begin && begin <= end && static_cast<uint64_t>(end) <= values->bytes();
        *inside = *inside && fits;
        if (!laid.Add(values->data() + (fits ? begin : 0),
                      fits ? static_cast<uint64_t>(end - begin) : 0))
          return false;
      }
      for (uint64_t i = 0; i < fills; ++i) {
        if (!laid.Add(entry.padding, entry.padding_bytes)) return false;
      }
      return true;
    };
    if (!ForEachRun(piece, shape, visit)) return false;
    from += CountElements(piece);
  }
  *values = std::move(laid.bytes);
  *offsets = std::move(laid.offsets);
  return true;
}

}  // namespace

bool PadTo(const std::vector<int64_t>& shape, const TensorEntry& entry,
           const std::vector<PaddedPiece>& pieces, AlignedBytes* values, AlignedBytes* offsets,
           bool* inside) {
  const bool all_fit =
      std::all_of(pieces.begin(), pieces.end(), [&shape](const PaddedPiece& piece) {
        return std::equal(piece.begin() + 1, piece.end(), shape.begin() + 1, shape.end());
      });
  const uint64_t elements = CountElements(shape);
  if (all_fit || elements == 0) return true;
  if (elements >= kTooMany) return false;
  return entry.dtype == static_cast<uint8_t>(penstock::ring::TensorDType::kString)
             ? PadStrings(shape, entry, pieces, values, offsets, inside)
             : PadNumbers(shape, entry, pieces, values);
}

}  // namespace penstock_client
