#include "server/codec/tensor_proto.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/codec/wire.h"

namespace penstock {
namespace {

using wire::ReadSize;
using wire::ReadTag;
using wire::ReadVarint;
using wire::SkipField;

constexpr size_t kAxesMax = 16;
// Of a value in a list, as StopLook counts it.
constexpr uint64_t kValueWork = 8;

// TensorFlow's codes (types.proto).
DType FromCode(uint64_t code) {
  switch (code) {
    case 1:
      return DType::kFloat32;
    case 2:
      return DType::kFloat64;
    case 3:
      return DType::kInt32;
    case 4:
      return DType::kUint8;
    case 5:
      return DType::kInt16;
    case 6:
      return DType::kInt8;
    case 9:
      return DType::kInt64;
    case 10:
      return DType::kBool;
    case 14:
      return DType::kBfloat16;
    case 17:
      return DType::kUint16;
    case 19:
      return DType::kFloat16;
    case 22:
      return DType::kUint32;
    case 23:
      return DType::kUint64;
    default:
      return DType::kInvalid;
  }
}

// The field of listed values that a type has: its number, and how wide each is on the wire (0: a
// varint).
struct ListField {
  uint32_t number;
  uint32_t width;
};
ListField ListOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return {5, 4};
    case DType::kFloat64:
      return {6, 8};
    case DType::kInt64:
      return {10, 0};
    case DType::kBool:
      return {11, 0};
    case DType::kFloat16:
    case DType::kBfloat16:
      return {13, 0};
    case DType::kUint32:
      return {16, 0};
    case DType::kUint64:
      return {17, 0};
    default:
      return {7, 0};
  }
}

// Calls visit(tag, begin, end) for each length-delimited field and visit(tag, value) for each
// varint; false when malformed.
template <typename VisitBytes, typename VisitNumber>
bool Walk(const uint8_t* p, const uint8_t* end, int depth, const VisitBytes& bytes,
          const VisitNumber& number) {
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return false;
    const uint32_t type = tag & 7;
    if (tag >> 3 == 0) return false;
    if (type == wire::kLengthDelimited) {
      size_t size;
      if ((p = ReadSize(p, end, &size)) == nullptr) return false;
      if (!bytes(tag >> 3, p, p + size)) return false;
      p += size;
    } else if (type == wire::kVarint) {
      uint64_t value;
      if ((p = ReadVarint(p, end, &value)) == nullptr) return false;
      number(tag >> 3, value);
    } else if (type == wire::kFixed32 || type == wire::kFixed64) {
      const ptrdiff_t width = type == wire::kFixed32 ? 4 : 8;
      if (end - p < width) return false;
      if (!bytes(tag >> 3, p, p + width)) return false;
      p += width;
    } else if ((p = SkipField(tag, p, end, depth)) == nullptr) {
      return false;
    }
  }
  return true;
}

bool ReadTensorShape(const uint8_t* p, const uint8_t* end, Shape* shape) {
  const auto ignore = [](uint32_t, uint64_t) {};
  return Walk(
      p, end, wire::kDepthLimit - 1,
      [&](uint32_t field, const uint8_t* from, const uint8_t* to) {
        if (field != 2) return true;
        int64_t size = 0;
        const bool sound = Walk(
            from, to, wire::kDepthLimit - 2,
            [](uint32_t, const uint8_t*, const uint8_t*) { return true; },
            [&](uint32_t inner, uint64_t value) {
              if (inner == 1) size = static_cast<int64_t>(value);
            });
        if (shape->size() < kAxesMax + 1) shape->push_back(size);
        return sound;
      },
      ignore);
}

}  // namespace

absl::StatusOr<ParsedTensor> ParseTensorProto(const uint8_t* data, size_t size) {
  ParsedTensor tensor;
  std::string content;
  // The type may stand behind the values.
  const auto find_type = [&](uint32_t field, uint64_t value) {
    if (field == 1) tensor.type.dtype = FromCode(value);
  };
  const auto find_rest = [&](uint32_t field, const uint8_t* from, const uint8_t* to) {
    if (field == 2) return ReadTensorShape(from, to, &tensor.type.shape);
    if (field == 4) {
      content.clear();
      AppendInPieces(&content,
                     {reinterpret_cast<const char*>(from), static_cast<size_t>(to - from)});
    }
    return true;
  };
  const uint8_t* const end = data + size;
  if (!Walk(data, end, wire::kDepthLimit, find_rest, find_type))
    return absl::DataLossError("not a TensorProto: malformed protobuf message");
  const size_t element = DTypeSize(tensor.type.dtype);
  if (element == 0)
    return absl::DataLossError("expected a tensor of numbers, found one of another type");
  bool known = tensor.type.shape.size() <= kAxesMax;
  for (const int64_t axis : tensor.type.shape) known = known && axis >= 0;
  const std::optional<int64_t> bytes = known ? NumBytes(tensor.type) : std::nullopt;
  if (!bytes || *bytes > kTensorBytesMax) {
    return absl::DataLossError(absl::StrCat("expected a shape of at most ", kTensorBytesMax,
                                            " bytes, found ", TypeToString(tensor.type)));
  }
  const auto wanted = static_cast<size_t>(*bytes);
  if (!content.empty() && wanted > 0) {
    if (content.size() != wanted) {
      return absl::DataLossError(
          absl::StrCat("expected ", wanted, " bytes of values, found ", content.size()));
    }
    tensor.values = std::move(content);
    if (tensor.type.dtype == DType::kBool) {
      InPieces(tensor.values.size(), [&](size_t first, size_t some) {
        for (size_t i = first; i < first + some; ++i)
          tensor.values[i] = static_cast<char>(tensor.values[i] != 0);
      });
    }
    return tensor;
  }
  const ListField list = ListOf(tensor.type.dtype);
  StopLook look;
  const auto add = [&](uint64_t value) {
    look.Did(kValueWork);
    // Whatever its bits, a flag is 0 or 1.
    if (tensor.type.dtype == DType::kBool) value = value != 0;
    if (tensor.values.size() < wanted)
      tensor.values.append(reinterpret_cast<const char*>(&value), element);
  };
  const bool sound = Walk(
      data, end, wire::kDepthLimit,
      [&](uint32_t field, const uint8_t* from, const uint8_t* to) {
        if (field != list.number) return true;
        while (from < to) {
          uint64_t value = 0;
          if (list.width == 0) {
            if ((from = ReadVarint(from, to, &value)) == nullptr) return false;
          } else {
            if (to - from < list.width) return false;
            std::memcpy(&value, from, list.width);
            from += list.width;
          }
          add(value);
        }
        return true;
      },
      [&](uint32_t field, uint64_t value) {
        if (field == list.number) add(value);
      });
  if (!sound) return absl::DataLossError("not a TensorProto: malformed protobuf message");
  if (tensor.values.empty() && wanted > 0) {
    tensor.values.assign(wanted, 0);  // at most 256 MiB
    return tensor;
  }
  tensor.values.reserve(wanted);
  while (tensor.values.size() < wanted) {
    look.Did(kValueWork);
    tensor.values.append(tensor.values, tensor.values.size() - element, element);
  }
  return tensor;
}

}  // namespace penstock
