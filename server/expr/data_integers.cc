#include "server/expr/data_integers.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/expr/arguments.h"
#include "server/expr/graph.h"
#include "server/expr/number_types.h"
#include "server/kernels/saturate.h"

namespace penstock::expr {
namespace {

// Whether the data gives the argument: an integer of any type, or a list of as many as there is to
// be.
bool IsOfData(const Argument& argument, const Shape& shape) {
  const TensorType& type = argument.type;
  if (argument.literal != nullptr || !IsInteger(type.dtype)) return false;
  if (type.shape.size() != shape.size()) return false;
  return shape.empty() || type.shape[0] == shape[0] || type.shape[0] == kUnknownSize;
}

std::string ListToString(const std::vector<int64_t>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

std::string Found(const Argument& argument) {
  return argument.type.dtype == DType::kInvalid ? "a text" : TypeToString(argument.type);
}

}  // namespace

absl::Status DataIntegers::Add(absl::Span<const Argument> arguments, int position,
                               std::string_view name, int64_t low, int64_t high) {
  const Argument& argument = arguments[position];
  items_.push_back({std::string(name), 1, low, high});
  if (IsOfData(argument, {})) {
    items_.back().dtype = argument.type.dtype;
    constants_.emplace_back();
    positions_.push_back(position);
    return absl::OkStatus();
  }
  int64_t value = 0;
  if (argument.literal == nullptr) {
    return WrongArgument(name, absl::StrCat("an integer of ", low, " to ", high, ", found ",
                                            TypeToString(argument.type)));
  }
  absl::Status status = ReadConstant(argument, name, low, high, &value);
  constants_.emplace_back(value);
  return status;
}

absl::Status DataIntegers::AddList(absl::Span<const Argument> arguments, int position,
                                   std::string_view name, std::string_view form, size_t count,
                                   int64_t low, int64_t high) {
  const Argument& argument = arguments[position];
  items_.push_back({std::string(name), count, low, high});
  if (IsOfData(argument, {static_cast<int64_t>(count)})) {
    items_.back().dtype = argument.type.dtype;
    constants_.resize(constants_.size() + count);
    positions_.push_back(position);
    return absl::OkStatus();
  }
  const auto* const values =
      argument.literal == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(argument.literal);
  bool fits = values != nullptr && values->size() == count;
  for (size_t i = 0; fits && i < count; ++i) fits = (*values)[i] >= low && (*values)[i] <= high;
  if (!fits) {
    return WrongArgument(
        name,
        absl::StrCat("a list of integers of ", low, " to ", high, ", ", Text(form), ", found ",
                     values != nullptr ? ListToString(*values) : Found(argument)));
  }
  constants_.insert(constants_.end(), values->begin(), values->end());
  return absl::OkStatus();
}

void DataIntegers::AddTensor(const Argument& argument, int position, std::string_view name,
                             const Shape& shape, int64_t low, int64_t high) {
  const auto count = static_cast<size_t>(*NumElements(shape));
  items_.push_back({std::string(name), count, low, high, argument.type.dtype});
  constants_.resize(constants_.size() + count);
  positions_.push_back(position);
}

int64_t DataIntegers::size(size_t i) const { return constants_[i].value_or(kUnknownSize); }

absl::Status DataIntegers::Read(absl::Span<const RowValue> values, IntegersRead* integers) const {
  integers->clear();
  size_t next = 0;
  for (const Item& item : items_) {
    const size_t first = integers->size();
    if (item.dtype == DType::kInvalid) {
      for (size_t i = 0; i < item.count; ++i) integers->push_back(*constants_[first + i]);
      continue;
    }
    const RowValue& value = values[next++];
    if (value.bytes != item.count * DTypeSize(item.dtype)) {
      return absl::DataLossError(absl::StrCat(item.name, ": expected ", item.count,
                                              " integers, found ", ShapeToString(value.shape)));
    }
    absl::Status status;
    VisitNumber(item.dtype, [&](auto type) {
      using T = decltype(type);
      for (size_t i = 0; i < item.count; ++i) {
        T read;
        std::memcpy(&read, value.data + i * sizeof(T), sizeof(T));
        integers->push_back(kernels::SaturateCast<int64_t>(read));
        if (integers->back() >= item.low && integers->back() <= item.high) continue;
        status = absl::DataLossError(
            absl::StrCat(item.name, ": expected ", item.low, " to ", item.high, ", found ", read));
        return;
      }
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::expr
