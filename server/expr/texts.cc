#include "server/expr/texts.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/row_shape.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"

namespace penstock::expr {
namespace {

class OfEachText final : public RowKernel {
 public:
  explicit OfEachText(EachText function) : function_(std::move(function)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    return function_({reinterpret_cast<const char*>(arguments[0].data), arguments[0].bytes}, out);
  }

 private:
  const EachText function_;
};

// The strings of one operand, one after another; those of a scalar and of a constant come again and again.
class Strings {
 public:
  explicit Strings(absl::string_view always) : always_(always) {}
  explicit Strings(const RowValue& value) {
    const auto* data = reinterpret_cast<const char*>(value.data);
    if (value.shape.empty()) {
      always_ = absl::string_view(data, value.bytes);
      return;
    }
    sizes_ = data;
    text_ = data + static_cast<size_t>(*NumElements(value.shape)) * sizeof(uint32_t);
  }

  absl::string_view Next() {
    if (always_) return *always_;
    uint32_t bytes;
    std::memcpy(&bytes, sizes_, sizeof(bytes));
    sizes_ += sizeof(bytes);
    const absl::string_view next(text_, bytes);
    text_ += bytes;
    return next;
  }

 private:
  std::optional<absl::string_view> always_;
  const char* sizes_ = nullptr;
  const char* text_ = nullptr;
};

class OfEachPair final : public RowKernel {
 public:
  OfEachPair(std::optional<std::string> a, std::optional<std::string> b, const TensorType& type,
             EachPair function)
      : a_(std::move(a)), b_(std::move(b)), type_(type), function_(std::move(function)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue* const a = a_ ? nullptr : &arguments[0];
    const RowValue* const b = b_ ? nullptr : &arguments[a_ ? 0 : 1];
    Shape shape;
    for (const RowValue* operand : {a, b}) {
      if (operand == nullptr || operand->shape.empty()) continue;
      if (!shape.empty() && shape != operand->shape) {
        return absl::DataLossError(absl::StrCat("expected two tensors of one shape, found ",
                                                ShapeToString(shape), " and ",
                                                ShapeToString(operand->shape)));
      }
      shape = operand->shape;
    }
    const auto count = static_cast<size_t>(*NumElements(shape));
    const bool is_sized = type_.dtype == DType::kString && !shape.empty();
    Strings first = a_ ? Strings(*a_) : Strings(*a), second = b_ ? Strings(*b_) : Strings(*b);
    std::string sizes, values;
    for (size_t i = 0; i < count; ++i) {
      const size_t before = values.size();
      function_(first.Next(), second.Next(), &values);
      if (values.size() > kEachStringBytesMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat("results larger than the limit: ", values.size(), " > ",
                         kEachStringBytesMax, " bytes of ", i + 1, " strings"));
      }
      const auto bytes = static_cast<uint32_t>(values.size() - before);
      if (is_sized) sizes.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    }
    if (HasUnknownAxes(type_.shape)) out.SetShape(shape);
    uint8_t* const to = out.Reserve(sizes.size() + values.size());
    if (!sizes.empty()) std::memcpy(to, sizes.data(), sizes.size());
    if (!values.empty()) std::memcpy(to + sizes.size(), values.data(), values.size());
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const std::optional<std::string> a_, b_;  // constants
  const TensorType type_;
  const EachPair function_;
};

}  // namespace

absl::StatusOr<BoundRowFunction> BindEachText(const Argument& input, std::string_view name,
                                              TensorType type, EachText function) {
  if (absl::Status status = ReadStrings(input, name); !status.ok()) return status;
  BoundRowFunction bound;
  bound.type = std::move(type);
  bound.kernel = std::make_shared<OfEachText>(std::move(function));
  bound.tensor_arguments = {0};
  return ForEachString(input.type.shape, std::move(bound));
}

void PutText(absl::string_view text, RowOutput& out) {
  uint8_t* const to = out.Reserve(text.size());
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  out.Commit();
}

void PutTexts(absl::Span<const absl::string_view> texts, RowOutput& out) {
  size_t bytes = texts.size() * sizeof(uint32_t);
  for (const absl::string_view text : texts) bytes += text.size();
  out.SetShape({static_cast<int64_t>(texts.size())});
  uint8_t* to = out.Reserve(bytes);
  for (const absl::string_view text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    std::memcpy(to, &size, sizeof(size));
    to += sizeof(size);
  }
  for (const absl::string_view text : texts) {
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  }
  out.Commit();
}

absl::StatusOr<BoundRowFunction> BindEachPair(absl::Span<const Argument> pair, std::string_view a,
                                              std::string_view b, DType dtype, EachPair function) {
  BoundRowFunction bound;
  bound.type.dtype = dtype;
  std::optional<std::string> constants[2];
  for (int i = 0; i < 2; ++i) {
    const Argument& argument = pair[i];
    if (argument.literal != nullptr && std::holds_alternative<std::string>(*argument.literal)) {
      constants[i] = std::get<std::string>(*argument.literal);
      continue;
    }
    if (absl::Status status = ReadStrings(argument, i == 0 ? a : b); !status.ok()) return status;
    bound.tensor_arguments.push_back(i);
    const Shape& shape = argument.type.shape;
    if (shape.empty()) continue;
    Shape& joined = bound.type.shape;
    bool fits = joined.empty() || joined.size() == shape.size();
    for (size_t axis = 0; fits && axis < joined.size(); ++axis) {
      fits = joined[axis] == shape[axis] || joined[axis] == kUnknownSize ||
             shape[axis] == kUnknownSize;
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a string, or two tensors of one "
                       "shape, found ",
                       TypeToString(pair[0].type), " and ", TypeToString(pair[1].type)));
    }
    if (joined.empty()) joined = shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (joined[axis] == kUnknownSize) joined[axis] = shape[axis];
  }
  if (bound.tensor_arguments.empty()) {
    return absl::InvalidArgumentError("expected a string of the data, found two constants");
  }
  bound.kernel = std::make_shared<OfEachPair>(std::move(constants[0]), std::move(constants[1]),
                                              bound.type, std::move(function));
  return bound;
}

}  // namespace penstock::expr
