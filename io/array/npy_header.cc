#include "io/array/npy_header.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxAxes = 64;  // NumPy's own limit
constexpr uint64_t kMaxArrayBytes = uint64_t{1} << 62;

absl::Status Malformed(absl::string_view expected, size_t at) {
  return absl::InvalidArgumentError(
      absl::StrCat("malformed .npy header: expected ", expected, ", at character ", at));
}

// The text of a header, read from its beginning to its end.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}

  absl::Status Parse(std::string* descr, bool* fortran_order, Shape* shape) {
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Take('{')) return Malformed("\"{\"", at_);
    while (!Take('}')) {
      const std::optional<std::string> key = TakeString();
      if (!key) return Malformed("a key in quotes", at_);
      if (!Take(':')) return Malformed("\":\"", at_);
      absl::Status status;
      if (*key == "descr" && !std::exchange(has_descr, true)) {
        status = TakeDescr(descr);
      } else if (*key == "fortran_order" && !std::exchange(has_order, true)) {
        status = TakeBool(fortran_order);
      } else if (*key == "shape" && !std::exchange(has_shape, true)) {
        status = TakeShape(shape);
      } else {
        return Malformed("descr, fortran_order and shape, each once", at_);
      }
      if (!status.ok()) return status;
      if (!Take(',') && Peek() != '}') return Malformed("\",\" or \"}\"", at_);
    }
    if (Peek() != '\0' || !has_descr || !has_order || !has_shape)
      return Malformed("descr, fortran_order and shape, and no more", at_);
    return absl::OkStatus();
  }

 private:
  // The next character that is no space; '\0' at the end.
  char Peek() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Take(char wanted) {
    if (Peek() != wanted) return false;
    ++at_;
    return true;
  }

  bool TakeWord(std::string_view word) {
    Peek();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  // Nothing that a header holds needs an escape.
  std::optional<std::string> TakeString() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view found = text_.substr(at_ + 1, end - at_ - 1);
    if (found.find('\\') != std::string_view::npos) return std::nullopt;
    at_ = end + 1;
    return std::string(found);
  }

  absl::Status TakeDescr(std::string* descr) {
    if (Peek() == '[' || Peek() == '(') {
      return absl::InvalidArgumentError(
          "an array of structures cannot be read: save each field as an array of its own");
    }
    std::optional<std::string> found = TakeString();
    if (!found) return Malformed("a type in quotes", at_);
    *descr = *std::move(found);
    return absl::OkStatus();
  }

  absl::Status TakeBool(bool* value) {
    if (TakeWord("True")) {
      *value = true;
    } else if (TakeWord("False")) {
      *value = false;
    } else {
      return Malformed("True or False", at_);
    }
    return absl::OkStatus();
  }

  absl::Status TakeShape(Shape* shape) {
    if (!Take('(')) return Malformed("\"(\"", at_);
    while (!Take(')')) {
      Peek();
      const size_t begin = at_;
      while (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_])))
        ++at_;
      int64_t size = 0;
      if (!absl::SimpleAtoi(absl::string_view(text_.data() + begin, at_ - begin), &size))
        return Malformed("a size of 63 bits", begin);
      TakeWord("L");  // as Python 2 wrote long ones
      if (shape->size() == kMaxAxes) return Malformed("at most 64 axes", begin);
      shape->push_back(size);
      if (!Take(',') && Peek() != ')') return Malformed("\",\" or \")\"", at_);
    }
    return absl::OkStatus();
  }

  const std::string_view text_;
  size_t at_ = 0;
};

DType NumberType(char kind, uint64_t bytes) {
  struct Entry {
    char kind;
    uint64_t bytes;
    DType dtype;
  };
  static constexpr Entry kEntries[] = {
      {'b', 1, DType::kBool},    {'i', 1, DType::kInt8},    {'u', 1, DType::kUint8},
      {'i', 2, DType::kInt16},   {'u', 2, DType::kUint16},  {'i', 4, DType::kInt32},
      {'u', 4, DType::kUint32},  {'i', 8, DType::kInt64},   {'u', 8, DType::kUint64},
      {'f', 2, DType::kFloat16}, {'f', 4, DType::kFloat32}, {'f', 8, DType::kFloat64}};
  for (const Entry& entry : kEntries) {
    if (entry.kind == kind && entry.bytes == bytes) return entry.dtype;
  }
  return DType::kInvalid;
}

// "<f4": the byte order, the kind and the bytes of an element (of "U": the code points).
absl::Status ReadDescr(const std::string& descr, NpyHeader* header) {
  const absl::Status unknown = absl::InvalidArgumentError(absl::StrCat(
      "an array of type \"", descr,
      "\" cannot be read: expected bool, (u)int8 to 64, float16 to 64, \"S\" or \"U\""));
  if (descr.size() < 2 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    return unknown;
  const char kind = descr[1];
  if (kind == 'O') {
    return absl::InvalidArgumentError(
        "an array of Python objects cannot be read: save it as numbers, or text as dtype \"S\" or "
        "\"U\"");
  }
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(descr.substr(2), &bytes) || bytes > UINT32_MAX) return unknown;
  if (descr[0] == '>' && bytes > 1 && kind != 'S' && kind != 'V') {
    return absl::InvalidArgumentError(
        absl::StrCat("an array of big-endian numbers (\"", descr,
                     "\") cannot be read: save array.astype(array.dtype.newbyteorder(\"<\"))"));
  }
  header->element_bytes = bytes;
  if (kind == 'S' || kind == 'U') {
    header->element = kind == 'S' ? NpyElement::kBytes : NpyElement::kUnicode;
    header->type.dtype = DType::kString;
    if (kind == 'U') header->element_bytes *= 4;
  } else if (kind == 'V' && bytes == 2) {
    header->element = NpyElement::kUntyped;
  } else {
    header->type.dtype = NumberType(kind, bytes);
    if (header->type.dtype == DType::kInvalid) return unknown;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const uint8_t> beginning) {
  const std::string_view bytes(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  if (bytes.substr(0, kMagic.size()) != kMagic || bytes.size() < 10)
    return absl::InvalidArgumentError("no .npy file: it does not begin as one");
  const auto byte = [&](size_t i) { return size_t{beginning[i]}; };
  const size_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an .npy file of an unknown version: expected 1.0 to 3.0, found ", version, ".", byte(7)));
  }
  const size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) return absl::InvalidArgumentError("no whole .npy header: it is cut");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxNpyHeaderBytes - begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("an .npy header longer than one may be: ", length, " > ",
                     kMaxNpyHeaderBytes - begin, " bytes"));
  }
  if (length > bytes.size() - begin)
    return absl::InvalidArgumentError("no whole .npy header: it is cut");

  NpyHeader header;
  std::string descr;
  bool fortran_order = false;
  absl::Status status =
      HeaderText(bytes.substr(begin, length)).Parse(&descr, &fortran_order, &header.type.shape);
  if (status.ok()) status = ReadDescr(descr, &header);
  if (!status.ok()) return status;
  if (fortran_order && header.type.shape.size() > 1) {
    return absl::InvalidArgumentError(
        "an array in Fortran order cannot be read: save numpy.ascontiguousarray(array)");
  }
  header.data_offset = begin + length;
  const std::optional<int64_t> elements = NumElements(header.type.shape);
  // Elements of no bytes would be as many as the header likes.
  if (!elements || (*elements > 0 && header.element_bytes == 0) ||
      __builtin_mul_overflow(static_cast<uint64_t>(*elements), header.element_bytes,
                             &header.data_bytes) ||
      header.data_bytes > kMaxArrayBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an array of impossible size: ", ShapeToString(header.type.shape), " of \"", descr, "\""));
  }
  return header;
}

}  // namespace penstock
