#include "server/expr/texts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/row_shape.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/broadcast.h"
#include "server/expr/each_string.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// Of a pair beside its bytes, as StopLook counts it.
constexpr uint64_t kPairWork = 64;
// So many bytes of two texts are compared with each other in the time of one that is written.
constexpr uint64_t kComparedBytes = 8;

class OfEachText final : public RowKernel {
 public:
  explicit OfEachText(EachText function) : function_(std::move(function)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    return function_({reinterpret_cast<const char*>(arguments[0].data), arguments[0].bytes}, out);
  }

 private:
  const EachText function_;
};

class OfEachPair final : public RowKernel {
 public:
  OfEachPair(std::optional<std::string> a, std::optional<std::string> b, const TensorType& type,
             EachPair function)
      : a_(std::move(a)), b_(std::move(b)), type_(type), function_(std::move(function)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const Operand a = a_ ? Operand(*a_, scratch) : Operand(arguments[0], scratch);
    const Operand b = b_ ? Operand(*b_, scratch) : Operand(arguments[a_ ? 0 : 1], scratch);
    const auto shape = BroadcastShapes(a.shape, b.shape);
    if (!shape) {
      return absl::DataLossError(absl::StrCat("shapes do not broadcast: ", ShapeToString(a.shape),
                                              " and ", ShapeToString(b.shape)));
    }
    const auto elements = CountElements(*shape);
    if (!elements.ok()) return elements.status();
    const auto count = static_cast<size_t>(*elements);
    const int64_t* const places_a = a.PlacesIn(*shape, scratch);
    const int64_t* const places_b = b.PlacesIn(*shape, scratch);
    const bool is_sized = type_.dtype == DType::kString && !shape->empty();
    std::string sizes, values;
    StopLook look;
    for (size_t i = 0; i < count; ++i) {
      const size_t before = values.size();
      const absl::string_view of_a = a.strings[places_a[i]], of_b = b.strings[places_b[i]];
      // What is looked at of both, at most.
      const size_t compared = std::min(of_a.size(), of_b.size());
      function_(of_a, of_b, &values);
      look.Did(values.size() - before + kPairWork + compared / kComparedBytes);
      if (values.size() > kEachStringBytesMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat("results larger than the limit: ", values.size(), " > ",
                         kEachStringBytesMax, " bytes of ", i + 1, " strings"));
      }
      const auto bytes = static_cast<uint32_t>(values.size() - before);
      if (is_sized) sizes.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    }
    if (HasUnknownAxes(type_.shape)) out.SetShape(*shape);
    uint8_t* const to = out.Reserve(sizes.size() + values.size());
    CopyInPieces(to, sizes.data(), sizes.size());
    CopyInPieces(to + sizes.size(), values.data(), values.size());
    out.Commit();
    return absl::OkStatus();
  }

 private:
  struct Operand {
    Operand(const std::string& constant, Arena& scratch) {
      auto* const one = scratch.AllocateArray<absl::string_view>(1);
      *one = constant;
      strings = {one, 1};
    }
    Operand(const RowValue& row, Arena& scratch)
        : shape(row.shape), strings(StringsOf(row, scratch)) {}

    const int64_t* PlacesIn(const Shape& result, Arena& scratch) const {
      auto* const places =
          scratch.AllocateArray<int64_t>(static_cast<size_t>(*NumElements(result)));
      BroadcastPlaces(shape, result, places);
      return places;
    }

    Shape shape;
    absl::Span<const absl::string_view> strings;
  };

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
  CopyInPieces(to, text.data(), text.size());
  out.Commit();
}

absl::Status PutTexts(absl::Span<const absl::string_view> texts, RowOutput& out) {
  out.SetShape({static_cast<int64_t>(texts.size())});
  return PutStrings(texts, /*is_scalar=*/false, out);
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
    auto joined = BroadcastShapes(bound.type.shape, argument.type.shape);
    if (!joined) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes do not broadcast: ", TypeToString(pair[0].type), " and ",
                       TypeToString(pair[1].type)));
    }
    bound.type.shape = *std::move(joined);
  }
  bound.broadcasts = true;
  if (bound.tensor_arguments.empty()) {
    return absl::InvalidArgumentError("expected a string of the data, found two constants");
  }
  bound.kernel = std::make_shared<OfEachPair>(std::move(constants[0]), std::move(constants[1]),
                                              bound.type, std::move(function));
  return bound;
}

}  // namespace penstock::expr
