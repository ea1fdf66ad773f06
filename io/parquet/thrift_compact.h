// Structs of Thrift's compact protocol, in bytes that may be anything: what the metadata of Parquet
// is written in.
//
//   struct   fields …, 0
//   field    (number - number before) << 4 | type, value      or 0 << 4 | type, zigzag number, value
//   list     size << 4 | type, values …                       or 15 << 4 | type, varint size, values …
//   number   zigzag varint        binary   varint size, bytes        double   8 bytes
//   bool     its type alone in a field; a byte in a list
//
// Source: "Thrift Compact protocol encoding" (thrift-compact-protocol.md of Apache Thrift).
//
// Whatever is not sound ends the reading: malformed() says so from then on, numbers are 0, and no
// struct or list has any more fields or elements. Of bytes that end too soon ended() says so, too.
//
// Threads:  one thread.
// Owns:     nothing; binaries point into the bytes.
// Limits:   kMaxThriftDepth of structs and lists in each other. A list has at most as many elements
//           as bytes are left.
// Cost:     one pass; fields that nobody asks for are passed over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {

inline constexpr int kMaxThriftDepth = 32;

class ThriftReader {
 public:
  enum class Type : uint8_t {
    kStop = 0,
    kTrue = 1,
    kFalse = 2,
    kByte = 3,
    kInt16 = 4,
    kInt32 = 5,
    kInt64 = 6,
    kDouble = 7,
    kBinary = 8,
    kList = 9,
    kSet = 10,
    kMap = 11,
    kStruct = 12,
    kUuid = 13,
  };

  explicit ThriftReader(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}

  bool malformed() const { return malformed_; }
  // The bytes end inside of what was read: with more of them it may be sound.
  bool ended() const { return ended_; }
  // How many bytes were read.
  size_t position() const { return at_; }

  // Calls `each` with the number of each field of a struct, which may read its value by the
  // functions below, once. What it does not read is passed over.
  void Struct(absl::FunctionRef<void(int)> each);

  // The value of the field, or of the element, that is next. Of another type: malformed. An integer
  // of any size is a Number.
  int64_t Number();
  bool Bool();
  absl::string_view Binary();
  // A struct in it, as Struct().
  void Inner(absl::FunctionRef<void(int)> each);
  // Calls `each` for each element of a list, which reads it or does not; `begin`, if given, first
  // with their number.
  void List(absl::FunctionRef<void()> each);
  void List(absl::FunctionRef<void(size_t)> begin, absl::FunctionRef<void()> each);

 private:
  uint8_t Byte();
  uint64_t Varint();
  int64_t Zigzag();
  void Pass(uint64_t bytes);
  void Fail();
  // Passes over a value of that type.
  void Skip(Type type, bool in_list);
  void SkipElements(Type type, uint64_t count);
  // The next value is taken; false where there is none, or it is of another type.
  bool Take(Type type);
  uint64_t ListSize(Type* type);

  const absl::Span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool malformed_ = false;
  bool ended_ = false;
  // Of the value that is next.
  Type next_ = Type::kStop;
  bool in_list_ = false;
  bool is_taken_ = true;
  int depth_ = 0;
};

}  // namespace penstock
