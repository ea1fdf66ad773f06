#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/data_integers.h"
#include "server/expr/number_types.h"
#include "server/kernels/saturate.h"

namespace penstock::expr {
namespace {

enum class Mode : uint8_t { kConstant, kEdge, kReflect, kSymmetric, kWrap };
constexpr std::array<const char*, 5> kModes = {"constant", "edge", "reflect", "symmetric", "wrap"};

struct Margin {
  int64_t before = 0;
  int64_t after = 0;
};
using Margins = absl::InlinedVector<Margin, 4>;

// One number for all margins, [before, after] of all axes, or of each.
Margins MarginsOf(absl::Span<const int64_t> given, size_t axes) {
  Margins margins(axes);
  for (size_t i = 0; i < axes; ++i) {
    const size_t at = given.size() <= 2 ? 0 : 2 * i;
    margins[i] = {given[at], given[given.size() == 1 ? 0 : at + 1]};
  }
  return margins;
}

// Where on an axis of `size` elements the one at `at`, which may lie before or behind it, is taken
// from; -1: nowhere.
int64_t SourceOf(Mode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  if (mode == Mode::kConstant) return -1;
  if (mode == Mode::kEdge) return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == Mode::kWrap) return (at % size + size) % size;
  if (size == 1) return 0;
  // There and back again; a reflection does not repeat the ends.
  const int64_t round = mode == Mode::kSymmetric ? 2 * size : 2 * size - 2;
  const int64_t place = (at % round + round) % round;
  if (place < size) return place;
  return mode == Mode::kSymmetric ? round - 1 - place : round - place;
}

// Of a stretch beside its bytes, as StopLook counts it.
constexpr uint64_t kStretchWork = 16;

class Pad final : public RowKernel {
 public:
  // `widths`: of the data, or constant `margins`.
  Pad(Mode mode, Margins margins, DataIntegers widths, size_t element_bytes,
      std::array<uint8_t, 8> value, bool sets_shape)
      : mode_(mode),
        margins_(std::move(margins)),
        widths_(std::move(widths)),
        element_bytes_(element_bytes),
        value_(value),
        sets_shape_(sets_shape) {}

  static Shape ShapeOf(Shape shape, const Margins& margins) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != kUnknownSize) shape[i] += margins[i].before + margins[i].after;
    }
    return shape;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (widths_.all_constant()) return Run(in, margins_, scratch, out);
    IntegersRead widths;
    if (absl::Status status = widths_.Read(arguments.subspan(1), &widths); !status.ok()) {
      return status;
    }
    return Run(in, MarginsOf(widths, in.shape.size()), scratch, out);
  }

 private:
  absl::Status Run(const RowValue& in, const Margins& margins, Arena& scratch,
                   RowOutput& out) const {
    const Shape shape = ShapeOf(in.shape, margins);
    if (!FitsRow(shape)) {
      return absl::DataLossError(
          absl::StrCat("padded tensor larger than limit: ", ShapeToString(shape)));
    }
    // Whether or not the result has elements, as in NumPy.
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (mode_ == Mode::kConstant || in.shape[axis] > 0 || shape[axis] == 0) continue;
      return absl::DataLossError(
          absl::StrCat("nothing to pad with: a tensor of shape ", ShapeToString(in.shape)));
    }
    if (sets_shape_) out.SetShape(shape);
    const size_t bytes = static_cast<size_t>(*NumElements(shape)) * element_bytes_;
    uint8_t* const to = out.Reserve(bytes);
    if (bytes > 0) {
      const std::vector<int64_t*> sources = SourcesOf(in.shape, margins, scratch);
      StopLook look;
      Fill(0, 0, in, margins, shape, sources, bytes, look, to);
    }
    out.Commit();
    return absl::OkStatus();
  }

  // Where the margins of each axis are taken from, that behind it next to that before it.
  std::vector<int64_t*> SourcesOf(const Shape& shape, const Margins& margins,
                                  Arena& scratch) const {
    std::vector<int64_t*> sources(shape.size());
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const Margin& margin = margins[axis];
      const int64_t count = margin.before + margin.after;
      sources[axis] = scratch.AllocateArray<int64_t>(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = i - margin.before;
        sources[axis][i] = SourceOf(mode_, at < 0 ? at : at + shape[axis], shape[axis]);
      }
    }
    return sources;
  }

  // Writes what lies at `element` of the axes before `axis`; -1: outside.
  void Fill(size_t axis, int64_t element, const RowValue& in, const Margins& margins,
            const Shape& shape, const std::vector<int64_t*>& sources, size_t bytes, StopLook& look,
            uint8_t* to) const {
    look.Did(kStretchWork);
    if (element < 0) {
      InPieces(bytes / element_bytes_, [&](size_t first, size_t some) {
        look.Did(some * element_bytes_);
        for (size_t i = first; i < first + some; ++i)
          std::memcpy(to + i * element_bytes_, value_.data(), element_bytes_);
      });
      return;
    }
    const auto from = in.data + static_cast<size_t>(element) * element_bytes_;
    if (axis == shape.size()) {
      std::memcpy(to, from, element_bytes_);
      return;
    }
    if (shape[axis] == 0) return;
    const size_t step = bytes / static_cast<size_t>(shape[axis]);
    const bool last = axis + 1 == shape.size();
    for (int64_t i = 0; i < shape[axis]; ++i, to += step) {
      if (last && i == margins[axis].before && in.shape[axis] > 0) {
        // The middle is the row itself.
        const int64_t count = in.shape[axis];
        look.Did(static_cast<size_t>(count) * element_bytes_);
        CopyInPieces(to, in.data + static_cast<size_t>(element * count) * element_bytes_,
                     static_cast<size_t>(count) * element_bytes_);
        i += count - 1;
        to += step * static_cast<size_t>(count - 1);
        continue;
      }
      const int64_t at = i - margins[axis].before, size = in.shape[axis];
      const bool inside = at >= 0 && at < size;
      const int64_t source = inside ? at : sources[axis][at < 0 ? i : i - size];
      Fill(axis + 1, source < 0 ? -1 : element * in.shape[axis] + source, in, margins, shape,
           sources, step, look, to);
    }
  }

  const Mode mode_;
  const Margins margins_;
  const DataIntegers widths_;
  const size_t element_bytes_;
  const std::array<uint8_t, 8> value_;
  const bool sets_shape_;
};

absl::StatusOr<Margins> ReadMargins(const Argument& argument, size_t axes) {
  const std::string expected =
      absl::StrCat("a number, a list [before, after], or one for each of ", axes,
                   " axes: constants of 0 to ", kImageSideMax, " or integers of the data");
  absl::InlinedVector<int64_t, 8> given;
  if (argument.literal != nullptr) {
    if (const auto* const number = std::get_if<int64_t>(argument.literal)) given = {*number};
    if (const auto* const list = std::get_if<std::vector<int64_t>>(argument.literal))
      given.assign(list->begin(), list->end());
  }
  if (given.size() != 1 && given.size() != 2 && given.size() != 2 * axes)
    return WrongArgument("pad_width", expected);
  for (const int64_t size : given) {
    if (size < 0 || size > kImageSideMax) return WrongArgument("pad_width", expected);
  }
  return MarginsOf(given, axes);
}

// Whether the data gives the widths, as one of the same forms.
bool IsOfData(const Argument& argument, size_t axes) {
  const TensorType& type = argument.type;
  if (argument.literal != nullptr || !IsInteger(type.dtype)) return false;
  return type.shape.empty() || type.shape == Shape{2} ||
         type.shape == Shape{static_cast<int64_t>(axes), 2};
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  const bool flags = x.dtype == DType::kBool;
  if ((!flags && !VisitNumber(x.dtype, [](auto) {})) || x.shape.empty()) {
    return WrongArgument(
        "x", absl::StrCat("numbers or flags of one axis at least, found ", TypeToString(x)));
  }
  const size_t axes = x.shape.size();
  DataIntegers widths;
  Margins margins(axes);
  const bool of_data = IsOfData(arguments[1], axes);
  if (of_data) {
    widths.AddTensor(arguments[1], 1, "pad_width", arguments[1].type.shape, 0, kImageSideMax);
  } else {
    auto read = ReadMargins(arguments[1], axes);
    if (!read.ok()) return read.status();
    margins = *std::move(read);
  }
  std::string name = kModes[0];
  ExactNumber number = int64_t{0};
  if (const absl::Status status =
          FirstError({ReadConstant(arguments[2], "mode", &name),
                      ReadConstant(arguments[3], "constant_values", &number)});
      !status.ok()) {
    return status;
  }
  const auto found = std::find(kModes.begin(), kModes.end(), name);
  if (found == kModes.end()) {
    return WrongArgument("mode", "\"constant\", \"edge\", \"reflect\", \"symmetric\" or \"wrap\"");
  }
  std::array<uint8_t, 8> value{};
  const auto put = [&](auto type) {
    using T = decltype(type);
    const T typed = std::visit([](auto given) { return kernels::SaturateCast<T>(given); }, number);
    std::memcpy(value.data(), &typed, sizeof(typed));
  };
  if (flags) {
    value[0] = std::visit([](auto given) { return given != 0; }, number) ? 1 : 0;
  } else {
    VisitNumber(x.dtype, put);
  }
  BoundRowFunction bound;
  bound.type = {x.dtype, of_data ? Shape(axes, kUnknownSize) : Pad::ShapeOf(x.shape, margins)};
  bound.kernel =
      std::make_shared<Pad>(static_cast<Mode>(found - kModes.begin()), margins, widths,
                            DTypeSize(x.dtype), value, !NumElements(bound.type.shape).has_value());
  bound.tensor_arguments = {0};
  if (of_data) bound.tensor_arguments.push_back(1);
  // One margin of each axis tells them apart.
  bound.takes_all_axes = of_data ||
                         !std::holds_alternative<std::vector<int64_t>>(*arguments[1].literal) ||
                         std::get<std::vector<int64_t>>(*arguments[1].literal).size() <= 2;
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "pad",
    .signature = "pad(x, pad_width, mode=\"constant\", constant_values=0)",
    .doc =
        "A tensor with a margin around it (numpy.pad).\n"
        "\n"
        "x: numbers or flags of one axis at least.\n"
        "pad_width: how many elements stand before and after each axis: [[before, after], ...], "
        "[before, after] for all axes, or one number; constants, or integers of the data, of which "
        "the result's sizes come then.\n"
        "mode: \"constant\"; \"edge\", the nearest element; \"reflect\" and \"symmetric\", the "
        "tensor mirrored without and with its edge; \"wrap\", the tensor again.\n"
        "constant_values: what a constant margin holds, one number, brought into the dtype's "
        "range.\n"
        "\n"
        "Only what is constant takes the place of a tensor without elements; else that is an "
        "error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
