// The ids of words that came before, for one thread.
//
// Threads:  one thread at a time.
// Limits:   words of up to 15 bytes with up to 3 ids lie in 32 bytes each, two to a line of the
//           processor's cache; longer ones, of up to 64 bytes with up to 16 ids, in a second table.
//           Neither grows: a new word takes an older one's place.
// Cost:     some 2 MiB.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace penstock::text {

class WordCache {
 public:
  static constexpr size_t kWordBytesMax = 15;
  static constexpr size_t kIdsMax = 3;

  // A word and its length, which is the last byte.
  struct Key {
    uint64_t low, high;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key{};  // a length of 0: empty
    uint32_t ids[kIdsMax];
    uint32_t count;
  };

  static constexpr size_t kLongBytesMax = 64;
  static constexpr size_t kLongIdsMax = 16;
  struct LongEntry {
    uint32_t bytes = 0;  // 0: empty
    uint32_t count;
    char word[kLongBytesMax];
    uint32_t ids[kLongIdsMax];
  };

  WordCache() : sets_(new Set[kSets]), long_entries_(new LongEntry[kLongEntries]) {}

  static Key KeyOf(const uint8_t* word, size_t bytes, const uint8_t* readable_end) {
    Key key{0, 0};
    if (readable_end - word >= 16) [[likely]] {
      std::memcpy(&key, word, 16);
      // What stands behind the word goes.
      const uint64_t low = bytes >= 8 ? 8 : bytes;
      const uint64_t high = bytes - low;
      key.low &= ~uint64_t{0} >> (64 - 8 * low);
      key.high &= (uint64_t{1} << (8 * high)) - 1;
    } else {
      std::memcpy(&key, word, bytes);
    }
    key.high |= uint64_t{bytes} << 56;
    return key;
  }

  const Entry* Find(const Key& key) const {
    const Set& set = sets_[Place(key)];
    if (set.entries[0].key == key) return &set.entries[0];
    if (set.entries[1].key == key) return &set.entries[1];
    return nullptr;
  }
  // REQUIRES: at most kIdsMax ids.
  void Put(const Key& key, const uint32_t* ids, size_t count) {
    Set& set = sets_[Place(key)];
    set.entries[1] = set.entries[0];
    Entry& entry = set.entries[0];
    entry.key = key;
    entry.count = static_cast<uint32_t>(count);
    for (size_t i = 0; i < count; ++i) entry.ids[i] = ids[i];
  }

  // Where a longer word lies, or would.
  LongEntry& LongPlace(std::string_view word) {
    uint64_t hash = word.size();
    for (size_t i = 0; i < word.size(); i += 8) {
      uint64_t part = 0;
      std::memcpy(&part, word.data() + i, word.size() - i < 8 ? word.size() - i : 8);
      hash = (hash ^ part) * kFactor;
      hash ^= hash >> 29;
    }
    return long_entries_[(hash * kFactor) >> (64 - kLongBits)];
  }

 private:
  static constexpr int kSetBits = 14;
  static constexpr size_t kSets = size_t{1} << kSetBits;
  static constexpr int kLongBits = 13;
  static constexpr size_t kLongEntries = size_t{1} << kLongBits;
  static constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  struct alignas(64) Set {
    Entry entries[2];
  };

  static size_t Place(const Key& key) {
    const uint64_t mixed = (key.low ^ (key.high * kFactor)) * 0xc2b2ae3d27d4eb4fu;
    return (mixed ^ (mixed >> 32)) * kFactor >> (64 - kSetBits);
  }

  std::unique_ptr<Set[]> sets_;
  std::unique_ptr<LongEntry[]> long_entries_;
};

// Appends the ids of a word that came before, or those that `encode(IdBuffer&)` appends, an
// absl::Status, and remembers them.
template <typename Ids, typename Encode>
auto EncodeThrough(WordCache& cache, std::string_view word, Ids& out, Encode encode) {
  using Status = decltype(encode(out));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(word.data());
  if (word.empty() || word.size() > WordCache::kLongBytesMax) return encode(out);
  const size_t before = out.size();
  if (word.size() <= WordCache::kWordBytesMax) {
    const WordCache::Key key = WordCache::KeyOf(bytes, word.size(), bytes + word.size());
    if (const WordCache::Entry* const entry = cache.Find(key); entry != nullptr) {
      out.AppendUpTo3(entry->ids, entry->count);
      return Status();
    }
    Status status = encode(out);
    const size_t count = out.size() - before;
    if (status.ok() && count <= WordCache::kIdsMax) cache.Put(key, out.data() + before, count);
    return status;
  }
  WordCache::LongEntry& entry = cache.LongPlace(word);
  if (entry.bytes == word.size() && std::memcmp(entry.word, bytes, word.size()) == 0) {
    out.Append({entry.ids, entry.count});
    return Status();
  }
  Status status = encode(out);
  const size_t count = out.size() - before;
  if (!status.ok() || count > WordCache::kLongIdsMax) return status;
  entry.bytes = static_cast<uint32_t>(word.size());
  entry.count = static_cast<uint32_t>(count);
  std::memcpy(entry.word, bytes, word.size());
  std::memcpy(entry.ids, out.data() + before, count * sizeof(uint32_t));
  return status;
}

}  // namespace penstock::text
