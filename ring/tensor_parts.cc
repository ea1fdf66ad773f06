#include "ring/tensor_parts.h"

#include <algorithm>
#include <cstring>

#include "ring/segment_plan.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 62;

bool Is(const TensorEntry& entry, TensorKind kind) {
  return entry.kind == static_cast<uint8_t>(kind);
}
bool IsString(const TensorEntry& entry) {
  return entry.dtype == static_cast<uint8_t>(TensorDType::kString);
}
bool IsBatched(const TensorEntry& entry) { return (entry.flags & kTensorBatched) != 0; }

// The product of the sizes of axes [first, last); false when it leaves 62 bits.
bool Product(const int64_t* shape, uint32_t first, uint32_t last, uint64_t* out) {
  uint64_t product = 1;
  for (uint32_t axis = first; axis < last; ++axis) {
    if (shape[axis] < 0 ||
        __builtin_mul_overflow(product, static_cast<uint64_t>(shape[axis]), &product) ||
        product >= kMaxElements) {
      return false;
    }
  }
  *out = product;
  return true;
}

// Whether the part and the spare bytes behind it are an aligned piece of the slot.
bool IsInside(const TensorPart& part, uint64_t slot_bytes) {
  return part.offset % kTensorAlignment == 0 && slot_bytes >= kTensorPadding &&
         part.offset <= slot_bytes - kTensorPadding &&
         part.bytes <= slot_bytes - kTensorPadding - part.offset;
}

// A part as whole numbers of 64 bits, of which there is at least one.
bool AsNumbers(const TensorPart& part, const uint8_t* slot, const int64_t** numbers,
               uint64_t* count) {
  *numbers = reinterpret_cast<const int64_t*>(slot + part.offset);
  *count = part.bytes / sizeof(int64_t);
  return part.bytes % sizeof(int64_t) == 0 && *count > 0;
}

// The row splits in `parts`, and how many rows there are behind the innermost of them.
const char* FindSplits(const TensorEntry& entry, const TensorPart* parts, const uint8_t* slot,
                       TensorParts* out, uint64_t* inner_rows) {
  for (uint32_t axis = 0; axis < entry.ragged_rank; ++axis) {
    if (!AsNumbers(parts[axis], slot, &out->splits[axis], &out->num_splits[axis])) {
      return "row splits are no whole numbers";
    }
    const uint64_t rows = out->num_splits[axis] - 1;
    if (axis == 0) {
      if (out->shape[0] != -1 && rows != static_cast<uint64_t>(out->shape[0])) {
        return "there are row splits for another number of rows";
      }
      out->shape[0] = static_cast<int64_t>(rows);
    } else if (rows != *inner_rows) {
      return "row splits of two axes do not fit together";
    }
    const int64_t last = out->splits[axis][rows];
    if (out->splits[axis][0] != 0 || last < 0) return "row splits do not begin with 0";
    *inner_rows = static_cast<uint64_t>(last);
  }
  return nullptr;
}

// Reads the part that holds the shape, where an axis is known to the data only.
const char* FindShape(const TensorEntry& entry, const TensorPart& part, const uint8_t* slot,
                      TensorParts* out) {
  if (part.bytes != entry.ndim * sizeof(int64_t)) return "a shape has another number of axes";
  int64_t shape[kMaxDims];
  std::memcpy(shape, slot + part.offset, part.bytes);
  for (uint32_t axis = 0; axis < entry.ndim; ++axis) {
    // A size below zero is found when the elements are counted.
    if (out->shape[axis] != -1 && shape[axis] != out->shape[axis]) {
      return "a shape is not the one that was declared";
    }
    out->shape[axis] = shape[axis];
  }
  return nullptr;
}

// Whether there are offsets for as many strings, which lie inside of their bytes.
const char* CheckStrings(const TensorParts& parts, uint64_t strings) {
  if (parts.num_offsets - 1 != strings) return "there are offsets for another number of strings";
  const int64_t last = parts.offsets[strings];
  if (parts.offsets[0] != 0 || last < 0 || static_cast<uint64_t>(last) > parts.values_bytes) {
    return "strings lie outside of their bytes";
  }
  return nullptr;
}

// The indices and the shape in `parts`, where the values are known.
const char* FindSparse(const TensorEntry& entry, const TensorPart* parts, const uint8_t* slot,
                       TensorParts* out) {
  uint64_t count = 0;
  if (IsString(entry)) {
    count = out->num_offsets - 1;
    if (const char* error = CheckStrings(*out, count)) return error;
  } else {
    count = out->values_bytes / ElementBytes(entry.dtype);
    if (out->values_bytes % ElementBytes(entry.dtype) != 0)
      return "the values have another size than their shape";
  }
  out->indices = reinterpret_cast<const int64_t*>(slot + parts[0].offset);
  out->num_indices = parts[0].bytes / sizeof(int64_t);
  if (parts[0].bytes % sizeof(int64_t) != 0 || out->num_indices != count * entry.ndim)
    return "there are indices for another number of values";
  if (const char* error = FindShape(entry, parts[1], slot, out)) return error;
  for (uint32_t axis = 0; axis < entry.ndim; ++axis) {
    if (out->shape[axis] < 0) return "a tensor's shape is below zero";
  }
  return nullptr;
}

}  // namespace

const char* CheckEntry(const TensorEntry& entry, uint64_t slot_bytes) {
  if (entry.name_bytes > kMaxNameBytes) return "a tensor's name is too long";
  if (entry.ndim > kMaxDims) return "a tensor has too many axes";
  if (IsBatched(entry) && entry.ndim == 0) return "a batched tensor has no rows";
  const bool known_kind =
      Is(entry, TensorKind::kRagged)
          ? entry.ragged_rank >= 1 && entry.ragged_rank < entry.ndim &&
                entry.ragged_rank <= kMaxRaggedRank - (IsString(entry) ? 1 : 0)
          : entry.ragged_rank == 0 &&
                (Is(entry, TensorKind::kSparse)   ? entry.ndim >= 1
                 : Is(entry, TensorKind::kString) ? IsString(entry)
                                                  : Is(entry, TensorKind::kDense));
  if (!known_kind || (!IsString(entry) && ElementBytes(entry.dtype) == 0)) {
    return "a tensor is of a kind that this client does not know";
  }
  for (uint32_t axis = 0; axis < entry.ndim; ++axis) {
    if (entry.shape[axis] < -1) return "a tensor's shape is below zero";
  }
  const bool fits = entry.padding_bytes == 0 || IsString(entry) ||
                    entry.padding_bytes == ElementBytes(entry.dtype);
  if (entry.padding_bytes > kMaxPaddingBytes || !fits)
    return "a tensor's padding is no element of it";
  if (!IsFixed(entry)) return nullptr;
  uint64_t elements, bytes;
  if (!Product(entry.shape, 0, entry.ndim, &elements) ||
      __builtin_mul_overflow(elements, ElementBytes(entry.dtype), &bytes) ||
      bytes != entry.capacity_bytes ||
      !IsInside({entry.offset, entry.capacity_bytes}, slot_bytes)) {
    return "a tensor does not lie inside of its slot";
  }
  return nullptr;
}

const char* FindParts(const TensorEntry& entry, const TensorExtent& extent, uint32_t rows,
                      const uint8_t* slot, uint64_t slot_bytes, TensorParts* out) {
  *out = {};
  std::copy(entry.shape, entry.shape + entry.ndim, out->shape);
  if (IsBatched(entry)) {
    out->shape[0] = out->shape[0] == -1 ? rows : std::min<int64_t>(rows, out->shape[0]);
  }
  const uint32_t num_parts = NumParts(entry);
  for (uint32_t part = 0; part < num_parts; ++part) {
    if (!IsInside(extent.parts[part], slot_bytes)) return "a part lies outside of its slot";
  }
  const bool is_string = IsString(entry);
  const TensorPart* next = extent.parts;
  if (is_string) {
    if (!AsNumbers(*next++, slot, &out->offsets, &out->num_offsets)) {
      return "the offsets of strings are no whole numbers";
    }
  }
  out->values = slot + next->offset;
  out->values_bytes = next->bytes;
  ++next;

  if (Is(entry, TensorKind::kSparse)) return FindSparse(entry, next, slot, out);

  uint64_t elements = 1;
  uint32_t first_known = 0;
  if (Is(entry, TensorKind::kRagged)) {
    if (const char* error = FindSplits(entry, next, slot, out, &elements)) return error;
    first_known = entry.ragged_rank + 1;
  } else if (num_parts > (is_string ? 2u : 1u)) {
    if (const char* error = FindShape(entry, *next, slot, out)) return error;
  }
  uint64_t inner;
  if (!Product(out->shape, first_known, entry.ndim, &inner) ||
      __builtin_mul_overflow(elements, inner, &elements) || elements >= kMaxElements) {
    return "there are more elements than a slot can hold";
  }
  if (is_string) {
    return CheckStrings(*out, elements);
  }
  uint64_t bytes;
  if (__builtin_mul_overflow(elements, ElementBytes(entry.dtype), &bytes)) {
    return "there are more elements than a slot can hold";
  }
  // A fixed tensor keeps its extent in a short batch.
  if (IsFixed(entry)) {
    out->values_bytes = std::min(bytes, out->values_bytes);
  }
  if (bytes != out->values_bytes) return "the values have another size than their shape";
  return nullptr;
}

}  // namespace penstock::ring
