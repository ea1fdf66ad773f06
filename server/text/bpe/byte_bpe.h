// Byte-level byte pair encoding: a word is its bytes, and pairs of neighbours are merged, the pair
// of the lowest rank first, the leftmost of several, until none can be. Made for speed: most words
// are found in a cache, whole.
//
// Threads:  a ByteBpe is constant after Make() and safe from any thread, each with a WordCache of
//           its own.
// Owns:     the tables; a cache belongs to the ByteBpe that it is used with and to no other.
// Limits:   ids below 2^31; words of up to 2^31 bytes.
// Cost:     a word of the cache is one look-up; another one n log n of its bytes. A WordCache has 2
//           MiB. Merging a long word looks for a stop.
// Source:   Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words with Subword Units
//           (2016).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/text/bpe/id_buffer.h"
#include "server/text/bpe/word_cache.h"

namespace penstock::text {

class ByteBpe {
 public:
  struct Merge {
    uint32_t left, right, id;
  };

  // The ids of the single bytes.
  using ByteIds = std::array<uint32_t, 256>;

  // `merges`: in the order of their ranks; of a pair that comes twice the last one counts. `whole`:
  // words that become one id before anything is merged, may be empty.
  static std::unique_ptr<ByteBpe> FromMerges(const ByteIds& bytes, const std::vector<Merge>& merges,
                                             absl::flat_hash_map<std::string, uint32_t> whole);

  // Of tokens whose ids are their ranks, as tiktoken has them: two neighbours merge if the token
  // exists that they are together. A word that is a token is that token. InvalidArgument where a
  // byte is no token.
  static absl::StatusOr<std::unique_ptr<ByteBpe>> FromRanks(
      absl::flat_hash_map<std::string, uint32_t> ranks);

  // Appends a word's ids. `readable_end`: bytes up to there may be read. REQUIRES: the word is not
  // empty.
  void Encode(const uint8_t* word, size_t bytes, const uint8_t* readable_end, WordCache& cache,
              IdBuffer& out) const {
    if (bytes > WordCache::kWordBytesMax) [[unlikely]] {
      EncodeLong(word, bytes, cache, out);
      return;
    }
    const WordCache::Key key = WordCache::KeyOf(word, bytes, readable_end);
    const WordCache::Entry* const entry = cache.Find(key);
    if (entry != nullptr) [[likely]] {
      out.AppendUpTo3(entry->ids, entry->count);
      return;
    }
    EncodeNew(word, bytes, key, cache, out);
  }

 private:
  // An open hash table of pairs: the key, what they merge to, and when.
  struct Pair {
    uint64_t key;
    uint32_t rank, id;
  };
  static constexpr uint64_t kNoPair = ~uint64_t{0};
  static constexpr uint32_t kNoRank = ~uint32_t{0};
  static constexpr uint32_t kNoId = ~uint32_t{0};
  static uint64_t KeyOf(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

  ByteBpe() = default;
  void Fill(const std::vector<Pair>& pairs);
  const Pair* Find(uint32_t left, uint32_t right) const {
    const uint64_t key = KeyOf(left, right);
    for (uint64_t i = (key * 0x9e3779b97f4a7c15u) >> shift_;; i = (i + 1) & mask_) {
      if (pairs_[i].key == key) return &pairs_[i];
      if (pairs_[i].key == kNoPair) return nullptr;
    }
  }
  void EncodeNew(const uint8_t* word, size_t bytes, const WordCache::Key& key, WordCache& cache,
                 IdBuffer& out) const;
  void EncodeLong(const uint8_t* word, size_t bytes, WordCache& cache, IdBuffer& out) const;
  // The two ways to merge: by looking at all pairs each time, and by a heap of them.
  size_t MergeShort(const uint8_t* word, size_t bytes, uint32_t* ids) const;
  void MergeLong(const uint8_t* word, size_t bytes, IdBuffer& out) const;

  // Constant after it was made.
  ByteIds bytes_;
  absl::flat_hash_map<std::string, uint32_t> whole_;
  std::vector<Pair> pairs_;
  // Of a pair of bytes, by both: the first step of every word.
  std::vector<uint32_t> byte_ranks_;
  int shift_ = 0;
  uint64_t mask_ = 0;
};

}  // namespace penstock::text
