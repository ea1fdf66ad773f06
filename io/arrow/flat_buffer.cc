#include "io/arrow/flat_buffer.h"

namespace penstock {
namespace {

constexpr uint64_t kVtableHeadBytes = 4;

}  // namespace

FlatTable FlatBuffer::Root() {
  if (!Has(0, sizeof(uint32_t))) return {};
  return FlatTable(this, Load<uint32_t>(0));
}

FlatTable::FlatTable(FlatBuffer* buffer, uint64_t at) {
  if (!buffer->Has(at, sizeof(int32_t))) return;
  const int64_t vtable = static_cast<int64_t>(at) - buffer->Load<int32_t>(at);
  if (vtable < 0 || !buffer->Has(static_cast<uint64_t>(vtable), kVtableHeadBytes)) {
    buffer->malformed_ = true;
    return;
  }
  vtable_ = static_cast<uint64_t>(vtable);
  vtable_bytes_ = buffer->Load<uint16_t>(vtable_);
  if (vtable_bytes_ < kVtableHeadBytes || !buffer->Has(vtable_, vtable_bytes_)) {
    buffer->malformed_ = true;
    return;
  }
  at_ = at;
  buffer_ = buffer;
}

uint64_t FlatTable::Field(int field) const {
  if (buffer_ == nullptr) return 0;
  const uint64_t entry = kVtableHeadBytes + 2 * static_cast<uint64_t>(field);
  if (entry + 2 > vtable_bytes_) return 0;
  const auto offset = buffer_->Load<uint16_t>(vtable_ + entry);
  return offset == 0 ? 0 : at_ + offset;
}

uint64_t FlatTable::Target(int field) const {
  const uint64_t at = Field(field);
  if (at == 0 || !buffer_->Has(at, sizeof(uint32_t))) return 0;
  return at + buffer_->Load<uint32_t>(at);
}

FlatTable FlatTable::Table(int field) const {
  const uint64_t target = Target(field);
  return target == 0 ? FlatTable() : FlatTable(buffer_, target);
}

absl::string_view FlatTable::String(int field) const {
  const FlatVector bytes = Vector(field, 1);
  if (bytes.size() == 0) return {};
  return {reinterpret_cast<const char*>(buffer_->bytes_.data() + bytes.at_), bytes.size()};
}

FlatVector FlatTable::Vector(int field, uint32_t element_bytes) const {
  const uint64_t target = Target(field);
  if (target == 0 || !buffer_->Has(target, sizeof(uint32_t))) return {};
  FlatVector vector;
  const auto size = buffer_->Load<uint32_t>(target);
  if (!buffer_->Has(target + sizeof(uint32_t), uint64_t{size} * element_bytes)) return {};
  vector.buffer_ = buffer_;
  vector.at_ = target + sizeof(uint32_t);
  vector.size_ = size;
  vector.element_bytes_ = element_bytes;
  return vector;
}

FlatTable FlatVector::Table(uint32_t i) const {
  const uint64_t at = at_ + uint64_t{i} * element_bytes_;
  return FlatTable(buffer_, at + buffer_->Load<uint32_t>(at));
}

}  // namespace penstock
