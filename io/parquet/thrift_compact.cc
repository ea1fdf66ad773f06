#include "io/parquet/thrift_compact.h"

namespace penstock {
namespace {

constexpr uint8_t kMaxType = static_cast<uint8_t>(ThriftReader::Type::kUuid);
constexpr uint64_t kLongList = 15;
constexpr uint64_t kUuidBytes = 16;

}  // namespace

void ThriftReader::Fail() { malformed_ = true; }

uint8_t ThriftReader::Byte() {
  if (malformed_) return 0;
  if (at_ == bytes_.size()) {
    ended_ = true;
    Fail();
    return 0;
  }
  return bytes_[at_++];
}

uint64_t ThriftReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const uint8_t byte = Byte();
    // Of the tenth byte one bit is left.
    if (shift == 63 && byte > 1) break;
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return malformed_ ? 0 : value;
  }
  Fail();
  return 0;
}

int64_t ThriftReader::Zigzag() {
  const uint64_t value = Varint();
  return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
}

void ThriftReader::Pass(uint64_t bytes) {
  if (malformed_) return;
  if (bytes > bytes_.size() - at_) {
    ended_ = true;
    Fail();
    return;
  }
  at_ += bytes;
}

bool ThriftReader::Take(Type type) {
  if (malformed_) return false;
  if (is_taken_ || next_ != type) {
    Fail();
    return false;
  }
  is_taken_ = true;
  return true;
}

int64_t ThriftReader::Number() {
  switch (next_) {
    case Type::kByte:
      return Take(next_) ? static_cast<int8_t>(Byte()) : 0;
    case Type::kInt16:
    case Type::kInt32:
    case Type::kInt64: {
      if (!Take(next_)) return 0;
      const int64_t value = Zigzag();
      const int bits = next_ == Type::kInt16 ? 16 : next_ == Type::kInt32 ? 32 : 64;
      if (bits < 64 && (value < -(int64_t{1} << (bits - 1)) || value >= int64_t{1} << (bits - 1))) {
        Fail();
        return 0;
      }
      return value;
    }
    default:
      Fail();
      return 0;
  }
}

bool ThriftReader::Bool() {
  if (next_ != Type::kTrue && next_ != Type::kFalse) {
    Fail();
    return false;
  }
  if (!Take(next_)) return false;
  if (!in_list_) return next_ == Type::kTrue;
  return Byte() == static_cast<uint8_t>(Type::kTrue);
}

absl::string_view ThriftReader::Binary() {
  if (!Take(Type::kBinary)) return {};
  const uint64_t size = Varint();
  const size_t begin = at_;
  Pass(size);
  if (malformed_) return {};
  return {reinterpret_cast<const char*>(bytes_.data()) + begin, static_cast<size_t>(size)};
}

void ThriftReader::Struct(absl::FunctionRef<void(int)> each) {
  if (++depth_ > kMaxThriftDepth) Fail();
  int64_t number = 0;
  while (!malformed_) {
    const uint8_t head = Byte();
    const uint8_t type = head & 0x0F;
    if (malformed_ || head == 0) break;
    if (type == 0 || type > kMaxType) {
      Fail();
      break;
    }
    number = head >> 4 != 0 ? number + (head >> 4) : Zigzag();
    if (number < INT16_MIN || number > INT16_MAX) Fail();
    if (malformed_) break;
    next_ = static_cast<Type>(type);
    in_list_ = false;
    is_taken_ = false;
    each(static_cast<int>(number));
    if (!is_taken_) Skip(static_cast<Type>(type), /*in_list=*/false);
  }
  is_taken_ = true;
  --depth_;
}

void ThriftReader::Inner(absl::FunctionRef<void(int)> each) {
  if (Take(Type::kStruct)) Struct(each);
}

uint64_t ThriftReader::ListSize(Type* type) {
  const uint8_t head = Byte();
  const uint64_t size = head >> 4 == kLongList ? Varint() : head >> 4;
  *type = static_cast<Type>(head & 0x0F);
  // No element takes less than a byte.
  if (!malformed_ && size > bytes_.size() - at_) {
    ended_ = true;
    Fail();
  }
  if (size > 0 && ((head & 0x0F) == 0 || (head & 0x0F) > kMaxType)) Fail();
  return malformed_ ? 0 : size;
}

void ThriftReader::List(absl::FunctionRef<void()> each) {
  List([](size_t) {}, each);
}

void ThriftReader::List(absl::FunctionRef<void(size_t)> begin, absl::FunctionRef<void()> each) {
  if (!Take(Type::kList)) return;
  if (++depth_ > kMaxThriftDepth) Fail();
  Type type = Type::kStop;
  const uint64_t size = ListSize(&type);
  if (!malformed_) begin(size);
  for (uint64_t i = 0; i < size && !malformed_; ++i) {
    next_ = type;
    in_list_ = true;
    is_taken_ = false;
    each();
    if (!is_taken_) Skip(type, /*in_list=*/true);
  }
  is_taken_ = true;
  --depth_;
}

void ThriftReader::SkipElements(Type type, uint64_t count) {
  for (uint64_t i = 0; i < count && !malformed_; ++i) Skip(type, /*in_list=*/true);
}

void ThriftReader::Skip(Type type, bool in_list) {
  is_taken_ = true;
  if (malformed_) return;
  if (type == Type::kStruct) return Struct([](int) {});
  if (++depth_ > kMaxThriftDepth) Fail();
  switch (type) {
    case Type::kStop:
      Fail();
      break;
    case Type::kTrue:
    case Type::kFalse:
      if (in_list) Pass(1);
      break;
    case Type::kByte:
      Pass(1);
      break;
    case Type::kInt16:
    case Type::kInt32:
    case Type::kInt64:
      Varint();
      break;
    case Type::kDouble:
      Pass(sizeof(double));
      break;
    case Type::kUuid:
      Pass(kUuidBytes);
      break;
    case Type::kBinary:
      Pass(Varint());
      break;
    case Type::kList:
    case Type::kSet: {
      Type elements = Type::kStop;
      const uint64_t size = ListSize(&elements);
      SkipElements(elements, size);
      break;
    }
    case Type::kMap: {
      const uint64_t size = Varint();
      if (malformed_ || size == 0) break;
      const uint8_t types = Byte();
      if (types >> 4 == 0 || types >> 4 > kMaxType || (types & 0x0F) == 0 ||
          (types & 0x0F) > kMaxType) {
        Fail();
      }
      for (uint64_t i = 0; i < size && !malformed_; ++i) {
        Skip(static_cast<Type>(types >> 4), /*in_list=*/true);
        Skip(static_cast<Type>(types & 0x0F), /*in_list=*/true);
      }
      break;
    }
    case Type::kStruct:
      break;
  }
  --depth_;
}

}  // namespace penstock
