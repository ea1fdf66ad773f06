#include "server/codec/parsed_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/large_charge.h"
#include "base/packed_row.h"

namespace penstock {
namespace {

// Readable, as behind every row.
alignas(64) constexpr uint8_t kNoValues[Arena::kPadding] = {};

absl::Status Wrong(const ParsedFeaturePlan& feature, const std::string& what) {
  return absl::DataLossError(absl::StrCat("feature \"", feature.name, "\": ", what));
}

size_t CountOf(const ExampleValue& value) { return value.present ? value.count : 0; }

PackedValues ValuesOf(const ParsedFeaturePlan& feature, const ExampleValue& value) {
  const RowBytes bytes = value.present ? RowBytes{value.bytes, value.size} : RowBytes{kNoValues, 0};
  return ReadDenseRow(feature.type.dtype, CountOf(value), bytes);
}

absl::Span<const int64_t> NumbersOf(const ExampleValue& value) {
  return absl::MakeConstSpan(reinterpret_cast<const int64_t*>(value.bytes), CountOf(value));
}

// Rows without items cost memory too, and a small record may ask for any number of them.
constexpr int64_t kMaxRows = int64_t{1} << 20;

// Row splits of `*items` items, whose number becomes that of the rows. False when they do not fit.
bool MakeSplits(const RowPartitionPlan& partition, absl::Span<const int64_t> numbers,
                int64_t* items, std::vector<int64_t>* splits) {
  splits->clear();
  const auto append = [&](int64_t end) {
    if (end < splits->back() || end > *items) return false;
    splits->push_back(end);
    return true;
  };
  switch (partition.kind) {
    case v1::RowPartition::kRowSplits:
      splits->push_back(0);
      if (numbers.empty()) return *items == 0;
      if (numbers[0] != 0) return false;
      for (const int64_t end : numbers.subspan(1)) {
        if (!append(end)) return false;
      }
      break;
    case v1::RowPartition::kRowLimits:
      splits->push_back(0);
      for (const int64_t end : numbers) {
        if (!append(end)) return false;
      }
      break;
    case v1::RowPartition::kRowLengths:
      splits->push_back(0);
      for (const int64_t length : numbers) {
        if (length < 0 || length > *items || !append(splits->back() + length)) return false;
      }
      break;
    case v1::RowPartition::kRowStarts:
      splits->push_back(0);
      // Without rows there is none for the values, which TensorFlow drops without a word.
      if (numbers.empty()) return *items == 0;
      if (numbers[0] != 0) return false;
      for (size_t i = 1; i < numbers.size(); ++i) {
        if (!append(numbers[i])) return false;
      }
      splits->push_back(*items);
      break;
    case v1::RowPartition::kValueRowids: {
      if (static_cast<int64_t>(numbers.size()) != *items) return false;
      splits->push_back(0);
      for (int64_t i = 0; i < *items; ++i) {
        const int64_t row = numbers[i];
        const auto open = static_cast<int64_t>(splits->size()) - 1;  // rows that have ended
        if (row < (i == 0 ? 0 : numbers[i - 1]) || row >= kMaxRows) return false;
        for (int64_t ended = open; ended < row; ++ended) splits->push_back(i);
      }
      if (*items > 0) splits->push_back(*items);
      break;
    }
    case v1::RowPartition::kUniformRowLength:
      if (*items % partition.length != 0) return false;
      for (int64_t end = 0; end <= *items; end += partition.length) splits->push_back(end);
      break;
    case v1::RowPartition::KIND_NOT_SET:
      return false;
  }
  if (splits->back() != *items) return false;
  *items = static_cast<int64_t>(splits->size()) - 1;
  return true;
}

absl::Status DoesNotFit(const ParsedFeaturePlan& feature, size_t partition, size_t numbers) {
  return Wrong(feature, absl::StrCat("expected a partition of its values, found that partition ",
                                     partition, ", of ", numbers, " numbers, does not fit"));
}

absl::Status MakeRagged(const ParsedFeaturePlan& feature, absl::Span<const ExampleValue> values,
                        int64_t items, Arena& arena, RowBytes* row) {
  PackedValues packed = ValuesOf(feature, values[feature.list]);
  // No partition has more rows than there are numbers, items, or kMaxRows.
  LargeCharge charge;
  std::vector<std::vector<int64_t>> splits(feature.partitions.size());
  for (size_t i = splits.size(); i-- > 0;) {
    const RowPartitionPlan& partition = feature.partitions[i];
    const absl::Span<const int64_t> numbers = partition.kind == v1::RowPartition::kUniformRowLength
                                                  ? absl::Span<const int64_t>()
                                                  : NumbersOf(values[partition.list]);
    const auto items_before = static_cast<uint64_t>(items);
    charge.Add((std::max<uint64_t>(items_before, numbers.size()) + 1) * sizeof(int64_t));
    if (!MakeSplits(partition, numbers, &items, &splits[i]))
      return DoesNotFit(feature, i, numbers.size());
  }
  // Rows and values that no row has.
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i - 1].back() == 0) splits[i].assign(1, 0);
  }
  if (!splits.empty() && splits.back().back() == 0) packed = {kNoValues, 0, nullptr, 0};
  if (feature.type.dtype == DType::kString && packed.string_sizes == nullptr)
    packed.string_sizes = kNoValues;
  *row = PackRagged(splits, packed, arena);
  return absl::OkStatus();
}

absl::Status MakeIndexed(const ParsedFeaturePlan& feature, absl::Span<const ExampleValue> values,
                         Arena& arena, RowBytes* row) {
  PackedValues packed = ValuesOf(feature, values[feature.list]);
  const size_t axes = feature.index_lists.size();
  std::vector<absl::Span<const int64_t>> places;
  for (const size_t list : feature.index_lists) {
    places.push_back(NumbersOf(values[list]));
    if (places.back().size() == packed.count) continue;
    return Wrong(feature, absl::StrCat("expected as many indices as values, found ",
                                       places.back().size(), " and ", packed.count));
  }
  // The lists below are of these sizes, whatever they are of.
  LargeCharge charge;
  charge.Add(packed.count * (sizeof(uint32_t) + axes * sizeof(int64_t)));
  std::vector<uint32_t> order(packed.count);
  std::iota(order.begin(), order.end(), 0);
  const auto less = [&](uint32_t a, uint32_t b) {
    for (const absl::Span<const int64_t> axis : places) {
      if (axis[a] != axis[b]) return axis[a] < axis[b];
    }
    return false;
  };
  const bool sorts = !feature.already_sorted && !std::is_sorted(order.begin(), order.end(), less);
  if (sorts) std::stable_sort(order.begin(), order.end(), less);
  std::vector<int64_t> indices;
  indices.reserve(packed.count * axes);
  for (const uint32_t value : order) {
    for (const absl::Span<const int64_t> axis : places) indices.push_back(axis[value]);
  }
  if (sorts) {
    // The same values in another order.
    uint8_t* const bytes = arena.Allocate(packed.size);
    uint8_t* to = bytes;
    if (packed.string_sizes == nullptr) {
      const size_t element = DTypeSize(feature.type.dtype);
      for (const uint32_t value : order) {
        std::memcpy(to, packed.bytes + value * element, element);
        to += element;
      }
    } else {
      charge.Add((packed.count + 1) * sizeof(size_t));
      std::vector<size_t> begins(1, 0);
      begins.reserve(packed.count + 1);
      for (size_t i = 0; i < packed.count; ++i)
        begins.push_back(begins.back() + packed.string_size(i));
      auto* sizes = arena.AllocateArray<uint32_t>(packed.count);
      for (size_t i = 0; i < order.size(); ++i) {
        const size_t size = packed.string_size(order[i]);
        sizes[i] = static_cast<uint32_t>(size);
        if (size > 0) std::memcpy(to, packed.bytes + begins[order[i]], size);
        to += size;
      }
      packed.string_sizes = reinterpret_cast<const uint8_t*>(sizes);
    }
    packed.bytes = bytes;
  }
  *row = PackSparse(feature.type.shape, indices, packed, arena);
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeParsedRow(const ParsedFeaturePlan& feature, absl::Span<const ExampleValue> values,
                           Arena& arena, RowBytes* row, int64_t* dims) {
  const ExampleValue& value = values[feature.list];
  if (feature.kind == ParsedFeaturePlan::Kind::kIndexed)
    return MakeIndexed(feature, values, arena, row);
  const auto count = static_cast<int64_t>(CountOf(value));
  if (count % feature.group != 0) {
    return Wrong(feature,
                 absl::StrCat("expected a multiple of ", feature.group, " values, found ", count));
  }
  const int64_t items = count / feature.group;
  if (feature.type.form == RowForm::kPackedRagged)
    return MakeRagged(feature, values, items, arena, row);
  *row = value.present ? RowBytes{value.bytes, value.size} : RowBytes{kNoValues, 0};
  const Shape& shape = feature.type.shape;
  std::copy(shape.begin(), shape.end(), dims);
  dims[0] = items;
  return absl::OkStatus();
}

absl::Status MakeRaggedSteps(const ParsedFeaturePlan& feature,
                             absl::Span<const SequenceValue> lists, Arena& arena, RowBytes* row) {
  const SequenceValue& value = lists[feature.list];
  // How many numbers of each partition belong to the steps so far.
  std::vector<size_t> used(feature.partitions.size(), 0);
  for (const RowPartitionPlan& partition : feature.partitions) {
    if (partition.kind == v1::RowPartition::kUniformRowLength) continue;
    if (lists[partition.list].steps == value.steps) continue;
    return Wrong(feature,
                 absl::StrCat("expected as many steps of its partitions as of its values, found ",
                              lists[partition.list].steps, " and ", value.steps));
  }
  std::vector<std::vector<int64_t>> splits(feature.partitions.size() + 1, {0});
  std::vector<int64_t> of_step;
  for (uint32_t step = 0; step < value.steps; ++step) {
    int64_t items = value.lengths[step];
    if (items % feature.group != 0) {
      return Wrong(feature, absl::StrCat("step ", step, ": expected a multiple of ", feature.group,
                                         " values, found ", items));
    }
    items /= feature.group;
    for (size_t i = feature.partitions.size(); i-- > 0;) {
      const RowPartitionPlan& partition = feature.partitions[i];
      absl::Span<const int64_t> numbers;
      if (partition.kind != v1::RowPartition::kUniformRowLength) {
        const SequenceValue& list = lists[partition.list];
        const auto count = static_cast<size_t>(list.lengths[step]);
        numbers = NumbersOf(list.values).subspan(used[i], count);
        used[i] += count;
      }
      if (!MakeSplits(partition, numbers, &items, &of_step))
        return DoesNotFit(feature, i, numbers.size());
      std::vector<int64_t>& all = splits[i + 1];
      if (partition.kind == v1::RowPartition::kValueRowids &&
          static_cast<int64_t>(all.size() + of_step.size()) > kMaxRows) {
        return DoesNotFit(feature, i, numbers.size());
      }
      const int64_t before = all.back();
      for (size_t end = 1; end < of_step.size(); ++end) all.push_back(before + of_step[end]);
    }
    splits[0].push_back(splits[0].back() + items);
  }
  PackedValues packed = ValuesOf(feature, value.values);
  if (feature.type.dtype == DType::kString && packed.string_sizes == nullptr)
    packed.string_sizes = kNoValues;
  *row = PackRagged(splits, packed, arena);
  return absl::OkStatus();
}

}  // namespace penstock
