#include "server/codec/example_outline.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/codec/example_wire.h"
#include "server/codec/packed_varints.h"
#include "server/codec/wire.h"

namespace penstock {
namespace {

using namespace example_wire;

constexpr size_t kWord = sizeof(uint64_t);

// The first eight bytes, or as many as there are.
uint64_t LoadWord(const uint8_t* p, const uint8_t* end) {
  uint64_t word = 0;
  if (end - p >= static_cast<ptrdiff_t>(kWord)) {
    std::memcpy(&word, p, kWord);
  } else {
    std::memcpy(&word, p, end - p);
  }
  return word;
}

// The content of a length-delimited field that ends at `end`, whose size is at `p`; null for any
// other.
const uint8_t* EnterWhole(const uint8_t* p, const uint8_t* end) {
  if (end - p > 0 && *p < 0x80) return p + 1 + *p == end ? p + 1 : nullptr;
  size_t size;
  p = wire::ReadSize(p, end, &size);
  return p != nullptr && p + size == end ? p : nullptr;
}

// The same behind its tag.
const uint8_t* EnterField(uint32_t tag, const uint8_t* p, const uint8_t* end) {
  return p < end && *p == tag ? EnterWhole(p + 1, end) : nullptr;
}

bool IsCountWanted(const ExampleOutline::Wish& wish, size_t count) {
  return wish.count < 0 || static_cast<size_t>(wish.count) == count;
}

}  // namespace

// `word`: LoadWord(p, end).
inline bool ExampleOutline::StartsWith(const Key& key, uint64_t word, const uint8_t* p,
                                       const uint8_t* end) {
  const size_t size = key.start.size();
  return (word & key.mask) == key.word && static_cast<size_t>(end - p) > size &&
         (size <= kWord || std::memcmp(p + kWord, key.start.data() + kWord, size - kWord) == 0);
}

void ExampleOutline::Add(std::string_view start, const Wish& wish) {
  Key key{std::string(start), 0, 0, wish};
  const size_t size = std::min(start.size(), kWord);
  std::memcpy(&key.word, start.data(), size);
  std::memset(&key.mask, 0xff, size);
  keys_.push_back(std::move(key));
}

const ExampleOutline::Key* ExampleOutline::Find(const uint8_t* p, const uint8_t* end) const {
  const uint64_t word = LoadWord(p, end);
  for (const Key& key : keys_) {
    if (StartsWith(key, word, p, end)) return &key;
  }
  return nullptr;
}

std::unique_ptr<const ExampleOutline> ExampleOutline::Make(const uint8_t* data, size_t size,
                                                           const Lookup& lookup,
                                                           const ExampleOutline* before) {
  auto outline = std::make_unique<ExampleOutline>();
  const uint8_t* const end = data + size;
  const uint8_t* p = EnterField(kFeaturesTag, data, end);
  while (p != nullptr && p < end) {
    size_t entry_size = 0, key_size = 0;
    // Each key is looked for among those before it.
    if (*p != kEntryTag || outline->keys_.size() == kMaxKeys) return nullptr;
    const uint8_t* const entry = wire::ReadSize(p + 1, end, &entry_size);
    if (entry == nullptr || entry_size == 0 || *entry != kKeyTag) return nullptr;
    const uint8_t* const entry_end = entry + entry_size;
    p = wire::ReadSize(entry + 1, entry_end, &key_size);
    if (p == nullptr || p + key_size == entry_end || p[key_size] != kValueTag ||
        !wire::IsUtf8(p, key_size) || outline->Find(entry, entry_end) != nullptr) {
      return nullptr;
    }
    const std::string_view key(reinterpret_cast<const char*>(p), key_size);
    p += key_size + 1;
    outline->Add({reinterpret_cast<const char*>(entry), static_cast<size_t>(p - entry)},
                 lookup(key));
    p = entry_end;
  }
  if (p == nullptr) return nullptr;
  if (before != nullptr) {
    const size_t found = outline->keys_.size();
    for (const Key& key : before->keys_) {
      const auto same = [&](const Key& other) { return other.start == key.start; };
      if (std::none_of(outline->keys_.begin(), outline->keys_.begin() + found, same))
        outline->keys_.push_back(key);
    }
  }
  if (outline->keys_.empty() || outline->keys_.size() > kMaxKeys) return nullptr;
  return outline;
}

bool ExampleOutline::Read(const uint8_t* data, size_t size, ExampleValue* values,
                          void* const* numbers, Arena* arena) const {
  const uint8_t* const end = data + size;
  const uint8_t* p = EnterField(kFeaturesTag, data, end);
  if (p == nullptr) return false;
  const Key* const keys_end = keys_.data() + keys_.size();
  const Key* key = keys_.data();
  while (p < end) {
    size_t entry_size;
    if (*p != kEntryTag) return false;
    p = wire::ReadSize(p + 1, end, &entry_size);
    if (p == nullptr) return false;
    const uint8_t* const entry_end = p + entry_size;
    const uint64_t word = LoadWord(p, entry_end);
    if (!StartsWith(*key, word, p, entry_end)) {
      // A key that is absent, mostly: the next one then.
      do ++key;
      while (key != keys_end && !StartsWith(*key, word, p, entry_end));
      if (key == keys_end && (key = Find(p, entry_end)) == nullptr) return false;
    }
    // Value, list and what follows each fill what encloses them.
    p = EnterWhole(p + key->start.size(), entry_end);
    if (p == nullptr || p == entry_end) return false;
    const uint8_t tag = *p;
    p = EnterWhole(p + 1, entry_end);
    if (p == nullptr) return false;
    const int position = key->wish.position;
    ExampleValue unwanted;
    ExampleValue& value = position >= 0 ? values[position] : unwanted;
    if (value.present) return false;  // a key twice
    if (!ReadList(key->wish, tag, {p, entry_end, end}, &value,
                  position >= 0 ? numbers[position] : nullptr, arena)) {
      return false;
    }
    value.present = true;
    if (++key == keys_end) key = keys_.data();
    p = entry_end;
  }
  return true;
}

bool ExampleOutline::ReadList(const Wish& wish, uint8_t tag, const List& list, ExampleValue* value,
                              void* numbers, Arena* arena) {
  const bool is_wanted = wish.position >= 0;
  switch (tag) {
    case kBytesListTag:
      return (!is_wanted || wish.kind == DType::kString) && ReadStrings(wish, list, value, arena);
    case kFloatListTag:
      return (!is_wanted || wish.kind == DType::kFloat32) &&
             ReadFloats(wish, list, value, numbers, arena);
    case kInt64ListTag:
      return (!is_wanted || wish.kind == DType::kInt64) &&
             ReadIntegers(wish, list, value, numbers, arena);
    default:
      return false;
  }
}

bool ExampleOutline::ReadStrings(const Wish& wish, const List& list, ExampleValue* value,
                                 Arena* arena) {
  if (!wish.gathered && wish.position >= 0) {
    const uint8_t* const p = EnterField(kBytesTag, list.p, list.end);
    if (p == nullptr) return false;
    *value = {false, 1, p, static_cast<size_t>(list.end - p)};
    return true;
  }
  // Counted, then put together.
  size_t count = 0, text_bytes = 0, size = 0;
  for (const uint8_t* p = list.p; p < list.end; p += size, ++count, text_bytes += size) {
    if (*p != kBytesTag) return false;
    if ((p = wire::ReadSize(p + 1, list.end, &size)) == nullptr) return false;
  }
  if (wish.position < 0) return true;
  if (!IsCountWanted(wish, count)) return false;
  const size_t bytes = count * sizeof(uint32_t) + text_bytes;
  uint8_t* sizes = arena->Allocate(bytes);
  uint8_t* text = sizes + count * sizeof(uint32_t);
  *value = {false, static_cast<uint32_t>(count), sizes, bytes};
  for (const uint8_t* p = list.p; p < list.end; p += size) {
    p = wire::ReadSize(p + 1, list.end, &size);
    const auto size32 = static_cast<uint32_t>(size);
    std::memcpy(sizes, &size32, sizeof(size32));
    std::memcpy(text, p, size);
    sizes += sizeof(size32);
    text += size;
  }
  return true;
}

bool ExampleOutline::ReadFloats(const Wish& wish, const List& list, ExampleValue* value,
                                void* numbers, Arena* arena) {
  const uint8_t* p = list.p;
  if (p < list.end && (p = EnterField(kPackedTag, p, list.end)) == nullptr) return false;
  const auto bytes = static_cast<size_t>(list.end - p);
  if (bytes % sizeof(float) != 0) return false;
  if (wish.position < 0) return true;
  const size_t count = bytes / sizeof(float);
  if (!IsCountWanted(wish, count)) return false;
  // In the record they are not aligned.
  if (wish.gathered) numbers = arena->Allocate(bytes);
  std::memcpy(numbers, p, bytes);
  *value = {false, static_cast<uint32_t>(count), static_cast<const uint8_t*>(numbers), bytes};
  return true;
}

bool ExampleOutline::ReadIntegers(const Wish& wish, const List& list, ExampleValue* value,
                                  void* numbers, Arena* arena) {
  const uint8_t* p = list.p;
  if (p < list.end && (p = EnterField(kPackedTag, p, list.end)) == nullptr) return false;
  const size_t count = CountPackedVarints(p, list.end);
  if (wish.position < 0) return CheckPackedVarints(p, list.end);
  if (!IsCountWanted(wish, count)) return false;
  if (wish.gathered) numbers = arena->Allocate(count * sizeof(int64_t));
  *value = {false, static_cast<uint32_t>(count), static_cast<const uint8_t*>(numbers),
            count * sizeof(int64_t)};
  return ReadPackedVarints(p, list.end, list.limit, static_cast<uint64_t*>(numbers));
}

}  // namespace penstock
