#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/axis.h"
#include "server/expr/number_types.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

enum class Mode : uint8_t { kRaise, kWrap, kClip };
constexpr std::array<const char*, 3> kModes = {"raise", "wrap", "clip"};

// Where an index counts from on an axis; -1: nowhere.
int64_t PlaceOf(Mode mode, int64_t index, int64_t size) {
  if (mode == Mode::kClip) return std::clamp<int64_t>(index, 0, size - 1);
  if (mode == Mode::kWrap) return (index % size + size) % size;
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

constexpr size_t kPlacesAtOnce = size_t{1} << 16;
// Of a place beside its bytes, as StopLook counts it.
constexpr uint64_t kPlaceWork = 16;

class Take final : public RowKernel {
 public:
  Take(Mode mode, DType index_dtype, size_t axis, size_t element_bytes, bool sets_shape)
      : mode_(mode),
        index_dtype_(index_dtype),
        axis_(axis),
        element_bytes_(element_bytes),
        sets_shape_(sets_shape) {}

  // Of strings that are always these: its only argument are the indices.
  Take(Mode mode, DType index_dtype, size_t axis, bool sets_shape, const Argument& strings)
      : mode_(mode),
        index_dtype_(index_dtype),
        axis_(axis),
        element_bytes_(0),
        sets_shape_(sets_shape),
        texts_(strings.texts),
        views_(texts_->begin(), texts_->end()),
        shape_(strings.type.shape) {}

  static Shape ShapeOf(const Shape& x, size_t axis, const Shape& indices) {
    Shape shape(x.begin(), x.begin() + static_cast<int64_t>(axis));
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), x.begin() + static_cast<int64_t>(axis) + 1, x.end());
    return shape;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const RowValue& indices = arguments[texts_ == nullptr ? 1 : 0];
    const Shape& from_shape = texts_ == nullptr ? in.shape : shape_;
    const AxisView view(from_shape, axis_);
    const auto count = static_cast<size_t>(*NumElements(indices.shape));
    auto* const places = scratch.AllocateArray<int64_t>(count);
    if (absl::Status status = ReadPlaces(indices, count, view.size, places); !status.ok())
      return status;
    const Shape shape = ShapeOf(from_shape, axis_, indices.shape);
    const auto elements = CountElements(shape);
    if (!elements.ok()) return elements.status();
    if (sets_shape_) out.SetShape(shape);
    if (element_bytes_ == 0) {
      auto* const taken = scratch.AllocateArray<absl::string_view>(static_cast<size_t>(*elements));
      TakeStrings(view, texts_ == nullptr ? StringsOf(in, scratch) : absl::MakeConstSpan(views_),
                  {places, count}, taken);
      return PutStrings({taken, static_cast<size_t>(*elements)}, shape.empty(), out);
    }
    const size_t bytes = static_cast<size_t>(view.inner) * element_bytes_;
    uint8_t* to = out.Reserve(static_cast<size_t>(*elements) * element_bytes_);
    const uint8_t* from = in.data;
    StopLook look;
    for (int64_t o = 0; o < view.outer && bytes > 0; ++o) {
      for (size_t first = 0; first < count; first += kPlacesAtOnce) {
        const size_t now = std::min(count - first, kPlacesAtOnce);
        look.Did(now * (bytes + kPlaceWork));
        switch (bytes) {
          case 4:
            Copy<4>(from, places + first, now, bytes, to);
            break;
          case 8:
            Copy<8>(from, places + first, now, bytes, to);
            break;
          default:
            Copy<0>(from, places + first, now, bytes, to);
            break;
        }
        to += now * bytes;
      }
      from += static_cast<size_t>(view.size) * bytes;
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  absl::Status ReadPlaces(const RowValue& indices, size_t count, int64_t size,
                          int64_t* places) const {
    absl::Status status;
    VisitNumber(index_dtype_, [&](auto type) {
      using T = decltype(type);
      StopLook look;
      for (size_t i = 0; i < count; ++i) {
        look.Did(kPlaceWork);
        T value;
        std::memcpy(&value, indices.data + i * sizeof(T), sizeof(T));
        const auto index = static_cast<int64_t>(value);
        places[i] = size == 0 ? -1 : PlaceOf(mode_, index, size);
        if (places[i] >= 0) continue;
        status = absl::DataLossError(
            absl::StrCat("take: index ", index, " is out of an axis of ", size));
        return;
      }
    });
    return status;
  }

  static void TakeStrings(const AxisView& view, absl::Span<const absl::string_view> from,
                          absl::Span<const int64_t> places, absl::string_view* to) {
    StopLook look;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (const int64_t place : places) {
        look.Did(static_cast<uint64_t>(view.inner) * sizeof(*to) + kPlaceWork);
        to = std::copy_n(from.begin() + (o * view.size + place) * view.inner, view.inner, to);
      }
    }
  }

  // kBytes: how many, where it is known; else 0.
  template <size_t kBytes>
  static void Copy(const uint8_t* from, const int64_t* places, size_t count, size_t bytes,
                   uint8_t* to) {
    for (size_t i = 0; i < count; ++i) {
      const size_t each = kBytes > 0 ? kBytes : bytes;
      std::memcpy(to + i * each, from + static_cast<size_t>(places[i]) * each, each);
    }
  }

  const Mode mode_;
  const DType index_dtype_;
  const size_t axis_;
  const size_t element_bytes_;  // 0: strings
  const bool sets_shape_;
  // Constant strings, what shows them, and their shape.
  const std::shared_ptr<const std::vector<std::string>> texts_;
  const std::vector<absl::string_view> views_;
  const Shape shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  if (x.dtype == DType::kInvalid || x.shape.empty()) {
    return WrongArgument("x",
                         absl::StrCat("a tensor of one axis at least, found ", TypeToString(x)));
  }
  const TensorType& indices = arguments[1].type;
  if (!IsInteger(indices.dtype) || indices.dtype == DType::kUint64) {
    return WrongArgument("indices",
                         absl::StrCat("integers, but for uint64, found ", TypeToString(indices)));
  }
  const auto axis = ReadAxis(arguments[2], x);
  if (!axis.ok()) return axis.status();
  std::string name = kModes[0];
  if (const absl::Status status = ReadConstant(arguments[3], "mode", &name); !status.ok())
    return status;
  const auto mode = std::find(kModes.begin(), kModes.end(), name);
  if (mode == kModes.end()) return WrongArgument("mode", "\"raise\", \"wrap\" or \"clip\"");
  BoundRowFunction bound;
  bound.type = {x.dtype, Take::ShapeOf(x.shape, *axis, indices.shape)};
  const auto outside = static_cast<Mode>(mode - kModes.begin());
  const bool sets_shape = HasUnknownSize(bound.type.shape);
  if (arguments[0].texts != nullptr) {
    bound.kernel = std::make_shared<Take>(outside, indices.dtype, *axis, sets_shape, arguments[0]);
    bound.tensor_arguments = {1};
    return bound;
  }
  bound.kernel =
      std::make_shared<Take>(outside, indices.dtype, *axis, DTypeSize(x.dtype), sets_shape);
  bound.tensor_arguments = {0, 1};
  bound.takes_all_axes = true;
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "take",
    .signature = "take(x, indices, axis=-1, mode=\"raise\")",
    .doc = "The elements of an axis that the data names, as of a table (numpy.take, tf.gather): "
           "take([7, 9], label) is 7 or 9.\n"
           "\n"
           "x: numbers, flags or strings of one axis at least: a constant, or a tensor of the "
           "element.\n"
           "indices: integers, negative ones from the end; their axes stand in the place of the "
           "one that they index.\n"
           "axis: a negative constant, -1 is the last axis; -2 takes rows of a table.\n"
           "mode: what becomes of an index that is outside: \"raise\", an error of its record; "
           "\"wrap\" and \"clip\" as NumPy's.\n"
           "\n"
           "After batch x is a constant, or a whole batch whose rows are named.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
