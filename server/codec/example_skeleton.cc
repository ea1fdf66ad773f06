#include "server/codec/example_skeleton.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "server/codec/wire.h"

namespace penstock {
namespace {

constexpr uint8_t kDelimited1 = 0x0a;  // field 1 of any message here
constexpr uint8_t kDelimited2 = 0x12;
constexpr uint8_t kDelimited3 = 0x1a;

// Joins the low seven bits of eight bytes.
uint64_t JoinSevens(uint64_t x) {
  x &= 0x7f7f7f7f7f7f7f7f;
  x = (x & 0x007f007f007f007f) | (x & 0x7f007f007f007f00) >> 1;
  x = (x & 0x00003fff00003fff) | (x & 0x3fff00003fff0000) >> 2;
  return (x & 0x000000000fffffff) | (x & 0x0fffffff00000000) >> 4;
}

}  // namespace

// Walks one message, marking which bits of it every record of its form has.
class ExampleSkeleton::Builder {
 public:
  Builder(const uint8_t* data, size_t size, const Lookup& lookup)
      : data_(data), end_(data + size), lookup_(lookup), mask_(size, 0xff) {}

  bool Walk(ExampleSkeleton* skeleton) {
    skeleton_ = skeleton;
    const uint8_t* p = data_;
    if (!Enter(kDelimited1, &p, end_)) return false;
    while (p < end_) {
      const uint8_t* entry_end = nullptr;
      if (!EnterPart(kDelimited1, &p, end_, &entry_end) || !WalkEntry(p, entry_end)) return false;
      p = entry_end;
    }
    AddWords();
    return true;
  }

 private:
  // Goes behind the tag and size of a field that reaches exactly to `end`.
  static bool Enter(uint8_t tag, const uint8_t** p, const uint8_t* end) {
    const uint8_t* field_end = nullptr;
    return EnterPart(tag, p, end, &field_end) && field_end == end;
  }
  static bool EnterPart(uint8_t tag, const uint8_t** p, const uint8_t* end,
                        const uint8_t** field_end) {
    if (*p == end || **p != tag) return false;
    size_t size = 0;
    *p = wire::ReadSize(*p + 1, end, &size);
    if (*p == nullptr) return false;
    *field_end = *p + size;
    return true;
  }

  bool WalkEntry(const uint8_t* p, const uint8_t* end) {
    const uint8_t* key_end = nullptr;
    if (!EnterPart(kDelimited1, &p, end, &key_end)) return false;
    const std::string_view key(reinterpret_cast<const char*>(p), key_end - p);
    if (!wire::IsUtf8(p, key.size()) || !keys_.insert(std::string(key)).second) return false;
    p = key_end;
    if (!Enter(kDelimited2, &p, end) || p == end) return false;
    const uint8_t kind = *p;
    if (!Enter(kind, &p, end)) return false;
    const Wish wish = lookup_(key);
    switch (kind) {
      case kDelimited1:
        return Enter(kDelimited1, &p, end) && AddRun(wish, DType::kString, p, end);
      case kDelimited2:
        return Enter(kDelimited1, &p, end) && AddRun(wish, DType::kFloat32, p, end);
      case kDelimited3:
        return Enter(kDelimited1, &p, end) && AddVarints(wish, p, end);
      default:
        return false;
    }
  }

  bool AddRun(const Wish& wish, DType kind, const uint8_t* p, const uint8_t* end) {
    std::fill(mask_.begin() + (p - data_), mask_.begin() + (end - data_), 0);
    const auto size = static_cast<size_t>(end - p);
    if (kind == DType::kFloat32 && size % sizeof(float) != 0) return false;
    if (wish.position < 0) return true;
    const int64_t count = kind == DType::kString ? 1 : size / sizeof(float);
    if (wish.kind != kind || wish.count != count) return false;
    ++skeleton_->num_found_;
    skeleton_->runs_.push_back(
        {wish.position, kind == DType::kFloat32, Offset(p), static_cast<uint32_t>(size)});
    return true;
  }

  bool AddVarints(const Wish& wish, const uint8_t* p, const uint8_t* end) {
    if (wish.position >= 0 && wish.kind != DType::kInt64) return false;
    uint32_t index = 0;
    while (p < end) {
      const uint8_t* last = p;
      while (last < end && *last >= 0x80) ++last;
      const auto bytes = static_cast<size_t>(last + 1 - p);
      if (last == end || bytes > 10) return false;
      std::fill_n(mask_.begin() + (p - data_), bytes, uint8_t{0x80});
      if (wish.position >= 0) {
        if (skeleton_->varints_.size() == kMaxVarints) return false;
        // At least eight bytes of tags and sizes precede a number: a load may begin before it.
        const uint32_t from = Offset(p);
        const uint32_t behind = from + static_cast<uint32_t>(bytes);
        Varint varint{wish.position, index, behind - 8, behind - 8, 0, 0, 0};
        if (bytes <= 8) {
          varint.low_shift = static_cast<uint8_t>(8 * (8 - bytes));
        } else {
          varint.low_offset = from;
          varint.high_shift = static_cast<uint8_t>(8 * (16 - bytes));
          varint.high_mask = ~uint64_t{0};
        }
        skeleton_->varints_.push_back(varint);
      }
      ++index;
      p = last + 1;
    }
    if (wish.position < 0) return true;
    ++skeleton_->num_found_;
    return wish.count == index;
  }

  // The last word ends with the message, so that nothing behind it is looked at.
  void AddWords() {
    const size_t size = mask_.size();
    for (size_t offset = 0; offset < size; offset += 8) {
      const size_t from = std::min(offset, size - 8);
      Word word{static_cast<uint32_t>(from), 0, 0};
      std::memcpy(&word.mask, mask_.data() + from, 8);
      word.bits = Load(data_ + from) & word.mask;
      if (word.mask != 0) skeleton_->words_.push_back(word);
    }
  }

  uint32_t Offset(const uint8_t* p) const { return static_cast<uint32_t>(p - data_); }

  const uint8_t* const data_;
  const uint8_t* const end_;
  const Lookup& lookup_;
  std::vector<uint8_t> mask_;
  std::set<std::string> keys_;
  ExampleSkeleton* skeleton_ = nullptr;
};

std::unique_ptr<const ExampleSkeleton> ExampleSkeleton::Make(const uint8_t* data, size_t size,
                                                             const Lookup& lookup) {
  if (size < 16 || size > kMaxBytes) return nullptr;
  auto skeleton = std::make_unique<ExampleSkeleton>();
  skeleton->size_ = size;
  if (!Builder(data, size, lookup).Walk(skeleton.get())) return nullptr;
  return skeleton;
}

inline uint64_t ExampleSkeleton::Number(const uint8_t* data, const Varint& varint) const {
  const uint64_t low = JoinSevens(Load(data + varint.low_offset) >> varint.low_shift);
  const uint64_t high =
      JoinSevens((Load(data + varint.high_offset) >> varint.high_shift) & varint.high_mask);
  return low | high << 56;
}

void ExampleSkeleton::Extract(const uint8_t* data, ExampleValue* values,
                              void* const* numbers) const {
  for (const Run& run : runs_) {
    values[run.position] = {true, 1, data + run.offset, run.size};
    if (run.copied) std::memcpy(numbers[run.position], data + run.offset, run.size);
  }
  for (const Varint& varint : varints_) {
    static_cast<uint64_t*>(numbers[varint.position])[varint.index] = Number(data, varint);
    values[varint.position].present = true;
  }
}

bool ExampleSkeleton::ExtractRow(const uint8_t* data, size_t row, const ExampleRows* places) const {
  for (const Run& run : runs_) {
    const ExampleRows& place = places[run.position];
    if (!run.copied && place.expected != ExampleRows::kAnySize && place.expected != run.size)
      return false;
    if (place.views != nullptr) {
      place.views[row] = {data + run.offset, run.size};
    } else {
      std::memcpy(place.data + row * place.row_bytes, data + run.offset, run.size);
    }
  }
  for (const Varint& varint : varints_) {
    const ExampleRows& place = places[varint.position];
    const uint64_t number = Number(data, varint);
    std::memcpy(place.data + row * place.row_bytes + varint.index * sizeof(number), &number,
                sizeof(number));
  }
  return true;
}

}  // namespace penstock
