// Tables of FlatBuffers, in bytes that may be anything: what the metadata of Arrow IPC is written
// in.
//
//   root:   u32, from where it stands on to the root table
//   table:  i32, back to its vtable; then the fields, anywhere in it
//   vtable: u16 bytes of itself, u16 bytes of the table, then a u16 for each field: where in the table it stands, 0 where it is absent
//   field:  a number, or a u32 from where it stands on to a table, a vector (u32 count, elements)
//           or a string (a vector of bytes)
//
// Source: "FlatBuffers Internals" of the FlatBuffers documentation. All numbers are little-endian,
// at any address.
//
// Whatever lies outside of the bytes is absent, and malformed() says from then on that there was
// such a thing.
//
// Threads:  one thread.
// Owns:     nothing; tables, vectors and strings point into the bytes.
// Limits:   2^31 - 1 bytes.
// Cost:     a look-up of a field is two loads. Nothing is checked ahead.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {

class FlatTable;
class FlatVector;

class FlatBuffer {
 public:
  explicit FlatBuffer(absl::Span<const uint8_t> bytes) : bytes_(bytes) {
    if (bytes.size() > INT32_MAX) bytes_ = {};
  }

  FlatTable Root();
  bool malformed() const { return malformed_; }

 private:
  friend class FlatTable;
  friend class FlatVector;

  // Whether these bytes are there.
  bool Has(uint64_t at, uint64_t size) {
    if (at <= bytes_.size() && size <= bytes_.size() - at) return true;
    malformed_ = true;
    return false;
  }
  // 0 where it is not there.
  template <typename T>
  T Load(uint64_t at) {
    T value{};
    if (Has(at, sizeof(T))) std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }

  absl::Span<const uint8_t> bytes_;
  bool malformed_ = false;
};

// Elements of `element_bytes` each; empty where there is none.
class FlatVector {
 public:
  FlatVector() = default;

  uint32_t size() const { return size_; }
  // Of element `i` at `offset` in it. REQUIRES: i < size().
  template <typename T>
  T Number(uint32_t i, uint32_t offset = 0) const {
    return buffer_->Load<T>(at_ + uint64_t{i} * element_bytes_ + offset);
  }
  // The same of offsets to tables.
  FlatTable Table(uint32_t i) const;

 private:
  friend class FlatTable;

  FlatBuffer* buffer_ = nullptr;
  uint64_t at_ = 0;
  uint32_t size_ = 0;
  uint32_t element_bytes_ = 0;
};

// Absent ones have no fields.
class FlatTable {
 public:
  FlatTable() = default;

  bool is_there() const { return buffer_ != nullptr; }

  // The field of that number, as the schema counts them.
  template <typename T>
  T Number(int field, T absent = T{}) const {
    const uint64_t at = Field(field);
    return at == 0 ? absent : buffer_->Load<T>(at);
  }
  FlatTable Table(int field) const;
  absl::string_view String(int field) const;
  FlatVector Vector(int field, uint32_t element_bytes) const;

 private:
  friend class FlatBuffer;
  friend class FlatVector;

  FlatTable(FlatBuffer* buffer, uint64_t at);
  // Where a field stands; 0: it is absent.
  uint64_t Field(int field) const;
  // Where what a field points to stands; 0: nowhere.
  uint64_t Target(int field) const;

  FlatBuffer* buffer_ = nullptr;
  uint64_t at_ = 0;
  uint64_t vtable_ = 0;
  uint16_t vtable_bytes_ = 0;
};

}  // namespace penstock
