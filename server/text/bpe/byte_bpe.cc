#include "server/text/bpe/byte_bpe.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock::text {
namespace {

// Up to so many bytes, looking at all pairs costs less than a heap.
constexpr size_t kShortBytesMax = 64;

}  // namespace

void ByteBpe::Fill(const std::vector<Pair>& pairs) {
  const uint64_t size = std::bit_ceil(std::max<uint64_t>(pairs.size() * 2, 16));
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  pairs_.assign(size, Pair{kNoPair, 0, 0});
  for (const Pair& pair : pairs) {
    uint64_t i = (pair.key * 0x9e3779b97f4a7c15u) >> shift_;
    while (pairs_[i].key != kNoPair && pairs_[i].key != pair.key) i = (i + 1) & mask_;
    pairs_[i] = pair;
  }
  byte_ranks_.assign(size_t{1} << 16, kNoRank);
  for (size_t a = 0; a < 256; ++a) {
    for (size_t b = 0; b < 256; ++b) {
      const Pair* const pair = Find(bytes_[a], bytes_[b]);
      if (pair != nullptr) byte_ranks_[a << 8 | b] = pair->rank;
    }
  }
}

std::unique_ptr<ByteBpe> ByteBpe::FromMerges(const ByteIds& bytes, const std::vector<Merge>& merges,
                                             absl::flat_hash_map<std::string, uint32_t> whole) {
  std::unique_ptr<ByteBpe> bpe(new ByteBpe);
  bpe->bytes_ = bytes;
  bpe->whole_ = std::move(whole);
  std::vector<Pair> pairs;
  pairs.reserve(merges.size());
  uint32_t rank = 0;
  for (const Merge& merge : merges)
    pairs.push_back({KeyOf(merge.left, merge.right), rank++, merge.id});
  bpe->Fill(pairs);
  return bpe;
}

absl::StatusOr<std::unique_ptr<ByteBpe>> ByteBpe::FromRanks(
    absl::flat_hash_map<std::string, uint32_t> ranks) {
  std::unique_ptr<ByteBpe> bpe(new ByteBpe);
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = ranks.find(std::string(1, static_cast<char>(byte)));
    if (found == ranks.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a token for each byte, found none for byte ", byte));
    }
    bpe->bytes_[byte] = found->second;
  }
  std::vector<Pair> pairs;
  StopLook look;
  for (const auto& [token, rank] : ranks) {
    const absl::string_view text = token;
    for (size_t i = 1; i < text.size(); ++i) {
      look.Did(text.size() + 16);
      const auto left = ranks.find(text.substr(0, i));
      if (left == ranks.end()) continue;
      const auto right = ranks.find(text.substr(i));
      if (right == ranks.end()) continue;
      pairs.push_back({KeyOf(left->second, right->second), rank, rank});
    }
  }
  bpe->whole_ = std::move(ranks);
  bpe->Fill(pairs);
  return bpe;
}

size_t ByteBpe::MergeShort(const uint8_t* word, size_t bytes, uint32_t* ids) const {
  // ranks[i] is that of the pair of ids i and i + 1.
  uint32_t ranks[kShortBytesMax];
  size_t count = bytes;
  for (size_t i = 0; i < count; ++i) ids[i] = bytes_[word[i]];
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = byte_ranks_[size_t{word[i]} << 8 | word[i + 1]];
  while (count > 1) {
    uint32_t least = kNoRank;
    size_t at = 0;
    for (size_t i = 0; i + 1 < count; ++i) {
      if (ranks[i] < least) {
        least = ranks[i];
        at = i;
      }
    }
    if (least == kNoRank) break;
    ids[at] = Find(ids[at], ids[at + 1])->id;
    --count;
    for (size_t i = at + 1; i < count; ++i) ids[i] = ids[i + 1];
    for (size_t i = at + 1; i + 1 < count; ++i) ranks[i] = ranks[i + 1];
    const auto rank_at = [&](size_t i) {
      const Pair* const pair = Find(ids[i], ids[i + 1]);
      return pair == nullptr ? kNoRank : pair->rank;
    };
    if (at > 0) ranks[at - 1] = rank_at(at - 1);
    if (at + 1 < count) ranks[at] = rank_at(at);
  }
  return count;
}

void ByteBpe::MergeLong(const uint8_t* word, size_t bytes, IdBuffer& out) const {
  struct Symbol {
    uint32_t id;             // kNoId: merged into the one before
    int32_t before, behind;  // -1: none
  };
  struct Waiting {
    uint32_t rank, at, id;
    uint64_t key;
    // The lowest rank comes out first, then the leftmost.
    bool operator<(const Waiting& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const auto count = static_cast<int32_t>(bytes);
  std::vector<Symbol> symbols(bytes);
  for (int32_t i = 0; i < count; ++i)
    symbols[i] = {bytes_[word[i]], i - 1, i + 1 < count ? i + 1 : -1};
  std::vector<Waiting> first;
  StopLook look;
  const auto wait_for = [&](int32_t left, auto put) {
    const int32_t right = symbols[left].behind;
    const Pair* const pair = Find(symbols[left].id, symbols[right].id);
    if (pair != nullptr) put({pair->rank, static_cast<uint32_t>(left), pair->id, pair->key});
  };
  for (int32_t i = 0; i + 1 < count; ++i) {
    wait_for(i, [&](const Waiting& one) { first.push_back(one); });
    look.Did(16);
  }
  std::priority_queue<Waiting> waiting(std::less<Waiting>(), std::move(first));
  while (!waiting.empty()) {
    look.Did(256);
    const Waiting next = waiting.top();
    waiting.pop();
    Symbol& left = symbols[next.at];
    // One of the two may have become another one meanwhile.
    if (left.id == kNoId || left.behind < 0 || KeyOf(left.id, symbols[left.behind].id) != next.key)
      continue;
    Symbol& right = symbols[left.behind];
    left.id = next.id;
    right.id = kNoId;
    left.behind = right.behind;
    const auto at = static_cast<int32_t>(next.at);
    if (left.behind >= 0) {
      symbols[left.behind].before = at;
      wait_for(at, [&](const Waiting& one) { waiting.push(one); });
    }
    if (left.before >= 0) wait_for(left.before, [&](const Waiting& one) { waiting.push(one); });
  }
  for (int32_t i = 0; i >= 0; i = symbols[i].behind) out.Append(symbols[i].id);
}

void ByteBpe::EncodeNew(const uint8_t* word, size_t bytes, const WordCache::Key& key,
                        WordCache& cache, IdBuffer& out) const {
  uint32_t ids[kShortBytesMax];
  size_t count;
  const auto whole =
      whole_.empty() ? whole_.end()
                     : whole_.find(absl::string_view(reinterpret_cast<const char*>(word), bytes));
  if (whole != whole_.end()) {
    ids[0] = whole->second;
    count = 1;
  } else {
    count = MergeShort(word, bytes, ids);
  }
  if (count <= WordCache::kIdsMax) cache.Put(key, ids, count);
  out.Append({ids, count});
}

void ByteBpe::EncodeLong(const uint8_t* word, size_t bytes, WordCache& cache, IdBuffer& out) const {
  const absl::string_view text(reinterpret_cast<const char*>(word), bytes);
  if (bytes > kShortBytesMax) {
    const auto whole = whole_.find(text);
    if (whole != whole_.end()) {
      out.Append(whole->second);
    } else {
      MergeLong(word, bytes, out);
    }
    return;
  }
  WordCache::LongEntry& entry = cache.LongPlace({text.data(), text.size()});
  if (entry.bytes == bytes && std::memcmp(entry.word, word, bytes) == 0) {
    out.Append({entry.ids, entry.count});
    return;
  }
  uint32_t ids[kShortBytesMax];
  size_t count = 1;
  const auto whole = whole_.find(text);
  if (whole != whole_.end()) {
    ids[0] = whole->second;
  } else {
    count = MergeShort(word, bytes, ids);
  }
  out.Append({ids, count});
  if (count > WordCache::kLongIdsMax) return;
  entry.bytes = static_cast<uint32_t>(bytes);
  entry.count = static_cast<uint32_t>(count);
  std::memcpy(entry.word, word, bytes);
  std::memcpy(entry.ids, ids, count * sizeof(uint32_t));
}

}  // namespace penstock::text
