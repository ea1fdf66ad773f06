#include "ring/segment_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "ring/aligned_map.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kMaxSegmentBytes = uint64_t{1} << 62;

Status Invalid(const std::string& message) { return {Code::kInvalidArgument, message}; }

// The least multiple of `unit`, a power of two, from `bytes` on. No overflow below 2^63.
uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) & ~(unit - 1); }

// Whether the axes fit the kind: which of them may be unknown, and how many are ragged.
Status CheckAxes(const TensorSpec& spec, const std::string& named) {
  const uint32_t rank_max = spec.kind != TensorKind::kRagged ? 0
                            : spec.dtype == static_cast<uint8_t>(TensorDType::kString)
                                ? kMaxRaggedRank - 1
                                : kMaxRaggedRank;
  if (spec.ragged_rank > rank_max || (spec.ragged_rank == 0 && spec.kind == TensorKind::kRagged) ||
      spec.ragged_rank >= spec.shape.size() + (spec.kind != TensorKind::kRagged)) {
    return Invalid(
        "a ragged tensor has 1 to 3 ragged axes behind the first one, one of strings 1 "
        "or 2, and any other none: " +
        std::to_string(spec.ragged_rank) + " of " + std::to_string(spec.shape.size()) + named);
  }
  for (size_t axis = 0; axis < spec.shape.size(); ++axis) {
    const int64_t size = spec.shape[axis];
    const bool is_ragged = axis >= 1 && axis <= spec.ragged_rank;
    const bool may_be_unknown = spec.kind != TensorKind::kRagged || axis <= spec.ragged_rank;
    if (size < -1 || (size == -1 && !may_be_unknown) || (size != -1 && is_ragged)) {
      return Invalid("axis " + std::to_string(axis) + " must be " +
                     (is_ragged ? "-1" : "0 or more, or -1 where the kind allows it") + ": " +
                     std::to_string(size) + named);
    }
  }
  return {};
}

Status PlanTensor(const TensorSpec& spec, TensorEntry* entry) {
  if (spec.name.empty() || spec.name.size() > kMaxNameBytes) {
    return Invalid("tensor name must have 1 to " + std::to_string(kMaxNameBytes) +
                   " bytes: " + std::to_string(spec.name.size()) + " (\"" + spec.name + "\")");
  }
  const std::string named = " (tensor \"" + spec.name + "\")";
  const bool is_string = spec.dtype == static_cast<uint8_t>(TensorDType::kString);
  const uint64_t element_bytes = ElementBytes(spec.dtype);
  if (element_bytes == 0 && !is_string) {
    return Invalid("unknown dtype code: " + std::to_string(spec.dtype) + named);
  }
  const bool takes_both = spec.kind == TensorKind::kRagged || spec.kind == TensorKind::kSparse;
  if (spec.kind > TensorKind::kSparse ||
      (!takes_both && is_string != (spec.kind == TensorKind::kString))) {
    return Invalid(
        "kind and dtype do not belong together: " + std::to_string(static_cast<int>(spec.kind)) +
        " and " + std::to_string(spec.dtype) + named);
  }
  if (spec.shape.size() > kMaxDims) {
    return Invalid("more than " + std::to_string(kMaxDims) +
                   " axes: " + std::to_string(spec.shape.size()) + named);
  }
  if (spec.batched && spec.shape.empty()) {
    return Invalid("a batched tensor needs an axis of rows" + named);
  }
  if (spec.kind == TensorKind::kSparse && spec.shape.empty()) {
    return Invalid("a sparse tensor needs an axis" + named);
  }
  if (Status status = CheckAxes(spec, named); !status.ok()) return status;
  uint64_t bytes = element_bytes;
  uint64_t row_bytes = element_bytes;
  for (size_t axis = 0; axis < spec.shape.size(); ++axis) {
    const uint64_t size = static_cast<uint64_t>(std::max<int64_t>(spec.shape[axis], 0));
    if (axis > 0 && __builtin_mul_overflow(row_bytes, size, &row_bytes)) {
      row_bytes = kMaxSegmentBytes;
    }
    if (__builtin_mul_overflow(bytes, size, &bytes)) bytes = kMaxSegmentBytes;
    // A sparse tensor stands for a dense one of any size.
    if (bytes >= kMaxSegmentBytes && spec.kind != TensorKind::kSparse)
      return Invalid("a batch does not fit in 2^62 bytes" + named);
  }
  entry->name_bytes = static_cast<uint32_t>(spec.name.size());
  entry->dtype = spec.dtype;
  entry->kind = static_cast<uint8_t>(spec.kind);
  entry->flags = static_cast<uint16_t>((spec.batched ? kTensorBatched : 0) |
                                       (spec.narrow_splits ? kTensorNarrowSplits : 0));
  entry->ndim = static_cast<uint32_t>(spec.shape.size());
  entry->ragged_rank = spec.ragged_rank;
  for (size_t axis = 0; axis < spec.shape.size(); ++axis) entry->shape[axis] = spec.shape[axis];
  if (IsFixed(*entry)) {
    entry->capacity_bytes = bytes;
    entry->row_bytes = spec.batched ? row_bytes : 0;
  }
  std::memcpy(entry->name, spec.name.data(), spec.name.size());
  if (!spec.padding) return {};
  if (element_bytes > 0 && !spec.padding->empty() && spec.padding->size() != element_bytes) {
    return Invalid(
        "padding of another size than an element: " + std::to_string(spec.padding->size()) + named);
  }
  if (spec.padding->size() > kMaxPaddingBytes) return {};
  entry->flags |= kTensorPadded;
  entry->padding_bytes = static_cast<uint32_t>(spec.padding->size());
  std::memcpy(entry->padding, spec.padding->data(), spec.padding->size());
  return {};
}

}  // namespace

uint64_t ElementBytes(uint8_t dtype) {
  switch (static_cast<TensorDType>(dtype)) {
    case TensorDType::kBool:
    case TensorDType::kInt8:
    case TensorDType::kUint8:
      return 1;
    case TensorDType::kInt16:
    case TensorDType::kUint16:
    case TensorDType::kFloat16:
    case TensorDType::kBfloat16:
      return 2;
    case TensorDType::kInt32:
    case TensorDType::kUint32:
    case TensorDType::kFloat32:
      return 4;
    case TensorDType::kInt64:
    case TensorDType::kUint64:
    case TensorDType::kFloat64:
      return 8;
    default:
      return 0;
  }
}

bool HasUnknownAxis(const TensorEntry& entry) {
  const int64_t* end = entry.shape + std::min(entry.ndim, kMaxDims);
  return std::find(entry.shape, end, -1) != end;
}

bool IsFixed(const TensorEntry& entry) {
  return entry.kind == static_cast<uint8_t>(TensorKind::kDense) && !HasUnknownAxis(entry);
}

uint32_t NumParts(const TensorEntry& entry) {
  const uint32_t data_parts = entry.dtype == static_cast<uint8_t>(TensorDType::kString) ? 2 : 1;
  if (entry.kind == static_cast<uint8_t>(TensorKind::kRagged)) {
    return data_parts + entry.ragged_rank;
  }
  if (entry.kind == static_cast<uint8_t>(TensorKind::kSparse)) return data_parts + 2;
  return data_parts + (HasUnknownAxis(entry) ? 1 : 0);
}

Status PlanSegment(const SegmentOptions& options, SegmentPlan* out) {
  *out = {};
  if (options.pipeline.empty() || options.pipeline.size() > kMaxNameBytes) {
    return Invalid("pipeline name must have 1 to " + std::to_string(kMaxNameBytes) +
                   " bytes: " + std::to_string(options.pipeline.size()));
  }
  if (options.tensors.empty() || options.tensors.size() > kMaxTensors) {
    return Invalid("a batch must have 1 to " + std::to_string(kMaxTensors) +
                   " tensors: " + std::to_string(options.tensors.size()));
  }
  if (options.slots < 1 || options.slots_max < options.slots || options.slots_max > kMaxSlots) {
    return Invalid("slots must be 1 to slots_max, and slots_max at most " +
                   std::to_string(kMaxSlots) + ": " + std::to_string(options.slots) + " and " +
                   std::to_string(options.slots_max));
  }
  if (options.structure.size() > kMaxStructureBytes) {
    return Invalid("the structure of an element is longer than " +
                   std::to_string(kMaxStructureBytes) +
                   " bytes: " + std::to_string(options.structure.size()));
  }
  uint64_t slot_bytes = 0;
  bool all_fixed = true;
  for (const TensorSpec& spec : options.tensors) {
    TensorEntry entry = {};
    if (Status status = PlanTensor(spec, &entry); !status.ok()) return status;
    if (IsFixed(entry)) {
      entry.offset = slot_bytes;
      slot_bytes = RoundUp(slot_bytes + entry.capacity_bytes + kTensorPadding, kTensorAlignment);
    } else {
      all_fixed = false;
    }
    if (slot_bytes >= kMaxSegmentBytes) return Invalid("a batch does not fit in 2^62 bytes");
    out->tensors.push_back(entry);
  }
  if (options.variable_bytes >= kMaxSegmentBytes) {
    return Invalid("a batch does not fit in 2^62 bytes");
  }
  if (all_fixed && options.variable_bytes > 0) {
    return Invalid("variable_bytes is for tensors that are not fixed, and all are: " +
                   std::to_string(options.variable_bytes));
  }
  if (!all_fixed && options.variable_bytes == 0) {
    return Invalid("a tensor has no fixed size, and variable_bytes gives it no memory");
  }
  out->variable_offset = slot_bytes;
  out->variable_bytes = RoundUp(options.variable_bytes, kTensorAlignment);
  // The last part has spare bytes of its own inside, unless it fills the memory to the end.
  if (out->variable_bytes > 0) slot_bytes += out->variable_bytes + kTensorPadding;
  // On a NUMA node all is taken at creation, where it is looked at.
  out->variable_grows = options.variable_grows && !all_fixed && options.numa_node < 0;
  // So that pieces of different slots are never on one huge page.
  const uint64_t unit = out->variable_grows ? kHugePageBytes : kPageBytes;
  out->slot_stride = RoundUp(slot_bytes, unit);

  out->ring_entries = std::bit_ceil(options.slots_max);
  uint64_t offset = sizeof(SegmentHeader);
  const auto place = [&offset](uint64_t count, uint64_t bytes) {
    const uint64_t at = offset;
    offset = RoundUp(offset + count * bytes, kCacheLine);
    return at;
  };
  out->tensor_table_offset = place(out->tensors.size(), sizeof(TensorEntry));
  out->slot_table_offset = place(options.slots_max, sizeof(SlotEntry));
  out->ring_table_offset = place(out->ring_entries, sizeof(RingEntry));
  out->extent_table_offset =
      place(uint64_t{options.slots_max} * out->tensors.size(), sizeof(TensorExtent));
  out->structure_bytes = options.structure.size();
  out->structure_offset = place(out->structure_bytes, 1);
  out->slot_data_offset = RoundUp(offset, unit);
  uint64_t data_bytes = 0;
  if (__builtin_mul_overflow(out->slot_stride, uint64_t{options.slots_max}, &data_bytes) ||
      data_bytes >= kMaxSegmentBytes) {
    return Invalid("the slots do not fit in 2^62 bytes");
  }
  out->segment_bytes = out->slot_data_offset + data_bytes;
  return {};
}

}  // namespace penstock::ring
