#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

constexpr int64_t kColoursMax = 256;

// Which class a colour is, by open addressing. Label maps have long stretches of one colour: the
// last answer is kept.
class ColourTable {
 public:
  static constexpr int kUnknown = -1;

  void Add(uint32_t colour, int index) {
    size_t slot = SlotOf(colour);
    while (classes_[slot] != kUnknown) {
      if (colours_[slot] == colour) return;  // the first of equal ones
      slot = (slot + 1) % kSlots;
    }
    colours_[slot] = colour;
    classes_[slot] = static_cast<int16_t>(index);
  }

  int Find(uint32_t colour) {
    if (colour == last_colour_) return last_class_;
    size_t slot = SlotOf(colour);
    while (classes_[slot] != kUnknown && colours_[slot] != colour) slot = (slot + 1) % kSlots;
    last_colour_ = colour;
    return last_class_ = classes_[slot];
  }

 private:
  static constexpr size_t kSlots = 1024;
  static size_t SlotOf(uint32_t colour) { return colour * 0x9E3779B1u >> 22; }

  std::array<uint32_t, kSlots> colours_{};
  std::array<int16_t, kSlots> classes_ = [] {
    std::array<int16_t, kSlots> none;
    none.fill(kUnknown);
    return none;
  }();
  uint32_t last_colour_ = UINT32_MAX;  // no colour: those have 24 bits
  int last_class_ = kUnknown;
};

// The first number of a table that is no channel's, if there is one.
std::optional<int64_t> FindUnfit(const uint8_t* table, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(int64_t)) {
    int64_t number;
    std::memcpy(&number, table + at, sizeof(number));
    if (number < 0 || number > 255) return number;
  }
  return std::nullopt;
}

// What stands in a result at the place of a class, and elsewhere.
struct Form {
  bool one_hot = true;
  bool wide = true;  // float32 instead of uint8
  int64_t unknown = -1;
};

class ColorMap final : public RowKernel {
 public:
  ColorMap(const Form& form, bool sets_shape) : form_(form), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& image = arguments[0];
    const int64_t height = image.shape[0], width = image.shape[1];
    const int64_t num_colours = arguments[1].shape[0];
    if (image.shape[2] != 3) {
      return absl::DataLossError(
          absl::StrCat("image of another number of channels than 3: ", image.shape[2]));
    }
    if (form_.one_hot) {
      const absl::Status status = CheckElements(height, width, num_colours);
      if (!status.ok()) return status;
    }
    if (const auto unfit = FindUnfit(arguments[1].data, arguments[1].bytes)) {
      return absl::DataLossError(
          absl::StrCat("colors: expected numbers of 0 to 255, found ", *unfit));
    }
    ColourTable table;
    for (int64_t i = 0; i < num_colours; ++i) {
      int64_t rgb[3];
      std::memcpy(rgb, arguments[1].data + i * sizeof(rgb), sizeof(rgb));
      table.Add(static_cast<uint32_t>(rgb[0] << 16 | rgb[1] << 8 | rgb[2]), static_cast<int>(i));
    }
    if (sets_shape_) {
      out.SetShape(form_.one_hot ? Shape{height, width, num_colours} : Shape{height, width});
    }
    const int64_t classes = form_.one_hot ? num_colours : 1;
    return form_.one_hot && form_.wide ? Write<float>(image, classes, table, out)
                                       : Write<uint8_t>(image, classes, table, out);
  }

 private:
  template <typename T>
  absl::Status Write(const RowValue& image, int64_t classes, ColourTable& table,
                     RowOutput& out) const {
    const int64_t num_pixels = image.shape[0] * image.shape[1];
    const int64_t tile_pixels =
        std::max<int64_t>(4096 / (classes * static_cast<int64_t>(sizeof(T))), 1);
    const uint8_t* pixel = image.data;
    for (int64_t start = 0; start < num_pixels; start += tile_pixels) {
      const int64_t count = std::min(tile_pixels, num_pixels - start);
      const size_t bytes = static_cast<size_t>(count * classes) * sizeof(T);
      uint8_t* to = out.Reserve(bytes);
      if (form_.one_hot) std::memset(to, 0, bytes);
      for (int64_t i = 0; i < count; ++i, pixel += 3, to += classes * sizeof(T)) {
        const uint32_t colour = uint32_t{pixel[0]} << 16 | uint32_t{pixel[1]} << 8 | pixel[2];
        int64_t found = table.Find(colour);
        if (found == ColourTable::kUnknown) {
          if (form_.unknown < 0) return UnknownColour(image, start + i, pixel);
          found = form_.unknown;
        }
        if (form_.one_hot) {
          const T one = 1;
          std::memcpy(to + found * static_cast<int64_t>(sizeof(T)), &one, sizeof(T));
        } else {
          *to = static_cast<uint8_t>(found);
        }
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

  static absl::Status UnknownColour(const RowValue& image, int64_t place, const uint8_t* pixel) {
    return absl::DataLossError(absl::StrCat(
        "a colour that is not in the table: [", pixel[0], ", ", pixel[1], ", ", pixel[2],
        "] at row ", place / image.shape[1], ", column ", place % image.shape[1]));
  }

  const Form form_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  Form form;
  std::string dtype = "float32";
  const TensorType& colours = arguments[1].type;
  const bool fits = colours.dtype == DType::kInt64 && colours.shape.size() == 2 &&
                    colours.shape[0] >= 1 && colours.shape[0] <= kColoursMax &&
                    colours.shape[1] == 3;
  if (!fits) {
    return WrongArgument("colors", absl::StrCat("a list of at most ", kColoursMax,
                                                " constant colours, [[red, green, blue], ...], "
                                                "found ",
                                                TypeToString(colours)));
  }
  if (const std::vector<uint8_t>* const table = arguments[1].constant) {
    if (const auto unfit = FindUnfit(table->data(), table->size())) {
      return WrongArgument("colors", absl::StrCat("numbers of 0 to 255, found ", *unfit));
    }
  }
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0], {DType::kUint8}),
           ReadConstant(arguments[2], "one_hot", &form.one_hot),
           ReadConstant(arguments[3], "unknown", -1, colours.shape[0] - 1, &form.unknown),
           ReadConstant(arguments[4], "dtype", &dtype)});
      !status.ok()) {
    return status;
  }
  const Shape& shape = arguments[0].type.shape;
  if (shape[2] != 3 && shape[2] != kUnknownSize) {
    return WrongArgument("image",
                         absl::StrCat("3 channels, found ", TypeToString(arguments[0].type)));
  }
  if (dtype != "float32" && dtype != "uint8") {
    return WrongArgument("dtype", "\"float32\" or \"uint8\"");
  }
  form.wide = dtype == "float32";
  BoundRowFunction bound;
  bound.type = {form.one_hot && form.wide ? DType::kFloat32 : DType::kUint8, {shape[0], shape[1]}};
  if (form.one_hot) bound.type.shape.push_back(colours.shape[0]);
  bound.kernel = std::make_shared<ColorMap>(form, !NumElements(bound.type.shape).has_value());
  bound.tensor_arguments = {0, 1};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "color_map",
    .signature = "color_map(image, colors, one_hot=True, unknown=-1, dtype=\"float32\")",
    .doc = "The class of each pixel of a label image, by a table of colours: class i has the "
           "colour colors[i].\n"
           "\n"
           "image: uint8 of shape (height, width, 3).\n"
           "colors: [[red, green, blue], ...], at most 256 constant colours; of equal ones the "
           "first counts.\n"
           "one_hot: whether the result has shape (height, width, classes), 1 at the pixel's "
           "class and 0 elsewhere; else it has shape (height,\n"
           "width) and holds the classes as uint8.\n"
           "unknown: the class of every other colour, a constant; -1: such a colour is an error "
           "of its record.\n"
           "dtype: of a one-hot result, \"float32\" or \"uint8\".\n"
           "\n"
           "As tf.reduce_all(tf.equal(image, color), -1) for each colour, stacked along the last "
           "axis, gives it where all colours are in the\n"
           "table.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
