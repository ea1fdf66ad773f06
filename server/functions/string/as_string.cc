#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/row_shape.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/number_types.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// More digits behind a point, or a wider field, are refused.
constexpr int64_t kWidthMax = 1024;
// As StopLook counts them: printf() takes its time.
constexpr uint64_t kNumberWork = 256;
constexpr uint64_t kTextWork = 16;

// How a value is written, by printf()'s names.
struct Format {
  std::string fill;  // "", or one flag
  int64_t width = 0;
  int64_t precision = -1;
  char floating = 'f';

  // A conversion but for its last letters.
  std::string Beginning() const {
    return absl::StrCat("%", fill, width > 0 ? absl::StrCat(width) : "");
  }
  std::string OfFloats() const {
    return absl::StrCat(Beginning(), precision >= 0 ? absl::StrCat(".", precision) : "",
                        std::string(1, floating));
  }
};

// Appends one number as printf() writes it.
template <typename T>
void Print(const std::string& format, T value, std::string* out) {
  // In front of the point float64 has at most 309 digits.
  char text[kWidthMax + 512];
  const int written = std::snprintf(text, sizeof(text), format.c_str(), value);
  out->append(text, static_cast<size_t>(std::clamp<int>(written, 0, sizeof(text) - 1)));
}

class AsString final : public RowKernel {
 public:
  AsString(const TensorType& type, const Format& format)
      : dtype_(type.dtype),
        is_scalar_(type.shape.empty()),
        sets_shape_(HasUnknownAxes(type.shape)),
        format_(format),
        signed_(format.Beginning() + "lld"),
        unsigned_(format.Beginning() + "llu"),
        floating_(format.OfFloats()) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const auto count = static_cast<size_t>(*NumElements(in.shape));
    std::string all;
    std::vector<size_t> ends;
    ends.reserve(count);
    StopLook look;
    if (dtype_ == DType::kString) {
      for (const absl::string_view text : StringsOf(in, scratch)) {
        if (all.size() > kEachStringBytesMax) break;
        look.Did(text.size() + kTextWork);
        PrintText(text, &all);
        ends.push_back(all.size());
      }
    } else if (dtype_ == DType::kBool) {
      for (size_t i = 0; i < count; ++i) {
        look.Did(kTextWork);
        all += in.data[i] != 0 ? "true" : "false";
        ends.push_back(all.size());
      }
    }
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      for (size_t i = 0; i < count && all.size() <= kEachStringBytesMax; ++i) {
        look.Did(kNumberWork);
        T value;
        std::memcpy(&value, in.data + i * sizeof(T), sizeof(T));
        PrintNumber(value, &all);
        ends.push_back(all.size());
      }
    });
    if (all.size() > kEachStringBytesMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("results larger than the limit: ", all.size(), " > ", kEachStringBytesMax,
                       " bytes of ", ends.size(), " strings"));
    }
    auto* const strings = scratch.AllocateArray<absl::string_view>(count);
    size_t begin = 0;
    InPieces(count, [&](size_t first, size_t some) {
      for (size_t i = first; i < first + some; begin = ends[i++])
        strings[i] = absl::string_view(all).substr(begin, ends[i] - begin);
    });
    return PutStrings({strings, count}, is_scalar_, out);
  }

 private:
  template <typename T>
  void PrintNumber(T value, std::string* out) const {
    if constexpr (std::is_floating_point_v<T>) {
      Print(floating_, static_cast<double>(value), out);
    } else if constexpr (std::is_signed_v<T>) {
      Print(signed_, static_cast<long long>(value), out);  // NOLINT(google-runtime-int): printf's
    } else {
      Print(unsigned_, static_cast<unsigned long long>(value), out);  // NOLINT(google-runtime-int)
    }
  }

  // A text in its field; one without a width stays as it is.
  void PrintText(absl::string_view text, std::string* out) const {
    const auto width = static_cast<size_t>(format_.width);
    if (width > 0 && format_.precision >= 0)
      text = text.substr(0, static_cast<size_t>(format_.precision));
    const size_t spaces = width > text.size() ? width - text.size() : 0;
    if (format_.fill != "-") out->append(spaces, ' ');
    AppendInPieces(out, text);
    if (format_.fill == "-") out->append(spaces, ' ');
  }

  const DType dtype_;
  const bool is_scalar_;
  const bool sets_shape_;
  const Format format_;
  const std::string signed_, unsigned_, floating_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& input = arguments[0].type;
  const bool is_text = input.dtype == DType::kString, is_flag = input.dtype == DType::kBool;
  if (!is_text && !is_flag && !VisitNumber(input.dtype, [](auto) {})) {
    return WrongArgument("input",
                         absl::StrCat("numbers, flags or strings, found ", TypeToString(input)));
  }
  Format format;
  bool scientific = false, shortest = false;
  absl::Status status =
      FirstError({ReadConstant(arguments[1], "precision", -1, kWidthMax, &format.precision),
                  ReadConstant(arguments[2], "scientific", &scientific),
                  ReadConstant(arguments[3], "shortest", &shortest),
                  ReadConstant(arguments[4], "width", -1, kWidthMax, &format.width),
                  ReadConstant(arguments[5], "fill", &format.fill)});
  if (!status.ok()) return status;
  if (scientific && shortest) return WrongArgument("shortest", "False where scientific is True");
  if (!is_text && !IsFloating(input.dtype) && (scientific || shortest || format.precision >= 0)) {
    return WrongArgument("input", absl::StrCat("floats where precision, scientific or shortest are "
                                               "given, found ",
                                               TypeToString(input)));
  }
  if (format.fill.size() > 1 ||
      (!format.fill.empty() &&
       absl::string_view(" +-0#").find(format.fill[0]) == absl::string_view::npos)) {
    return WrongArgument("fill", "\"\", \" \", \"+\", \"-\", \"0\" or \"#\"");
  }
  if (format.fill == "#" && !IsFloating(input.dtype)) format.fill.clear();
  if (scientific || shortest) format.floating = scientific ? 'e' : 'g';
  BoundRowFunction bound;
  bound.type = {DType::kString, input.shape};
  bound.tensor_arguments = {0};
  bound.kernel = std::make_shared<AsString>(input, format);
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "as_string",
    .signature = "as_string(input, precision=-1, scientific=False, shortest=False, width=-1, "
                 "fill=\"\")",
    .doc =
        "Numbers as texts, as tf.strings.as_string writes them: as printf does.\n"
        "\n"
        "input: numbers, flags (\"true\" and \"false\"), or strings.\n"
        "precision: digits after the point of floats, 6 where it is negative; a constant.\n"
        "scientific: whether floats are written with an exponent.\n"
        "shortest: whether floats are written the shorter way, without zeros at their end.\n"
        "width: of the field that a text has at least; flags have none.\n"
        "fill: what printf's flag is, which stands before the width: \"0\" fills the field up with "
        "zeros, \"-\" with spaces after the text, \"+\" and \" \" stand for the sign of a "
        "positive "
        "number.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
