// The numbers of tokens of a data file's records, as the stages of a pipeline make documents of them: in memory, and in an index of tokens
// that is kept beside the record index (io/record/index_store.h), under the name of the data with the hash of its key:
// ".part-7.tokens-0123456789abcdef" and kIndexSuffix. So a data file may have several.
//
//   0        8         12       16          24         32       40        44        48          56       64       72
//   ┌────────┬─────────┬────────┬───────────┬──────────┬────────┬─────────┬─────────┬───────────┬────────┬────────┬──────────┐
//   │ magic  │ version │ width  │ data file │ its      │ its    │ CRC of  │ CRC of  │ records   │ of     │ tokens │ the      │
//   │PENSTTK\n│ u32    │ u32    │ bytes u64 │ modified │ object │ first   │ last    │ u64       │ them   │ of the │ data's   │
//   │        │         │        │           │ ns i64   │ u64    │ 4 KiB   │ 4 KiB   │           │ left   │ others │ holder   │
//   │        │         │        │           │          │        │ u32     │ u32     │           │ out    │ u64    │ u64      │
//   └────────┴─────────┴────────┴───────────┴──────────┴────────┴─────────┴─────────┴───────────┴────────┴────────┴──────────┘
//   80 changed ns i64 │ 88 the index's own object u64 │ 96 bytes of the key u64 │ 104 zeros │ 124 CRC of these 124 bytes and the key, u32
//   128 the key │ zeros up to a multiple of 8 │ a count of `width` (2 or 4) bytes for each record │ CRC of all counts, u32
//
// Numbers are little-endian, checksums CRC-32C. A count of all ones is a record that makes no document. The key is a text that holds
// whatever the counts depend on beside the data; one byte of it that differs is another index.
//
// Like a record index it is never believed: it belongs to data of the same size and ends, and of the same version, or to a copy that is not
// newer than the index's.
//
// Threads:  LookAtTokenCounts() and LoadTokenCounts() from any thread; TokenCounts is constant.
// Owns:     TokenCounts owns its memory: 2 bytes a record, or 4 where one has 65,535 tokens or more.
// Limits:   kMaxKeyBytes, kMost.
// Cost:     looking reads some KiB; loading reads all, once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/disk.h"
#include "base/file.h"
#include "io/record/index_file.h"
#include "io/record/index_store.h"

namespace penstock {

class TokenCounts {
 public:
  static constexpr uint32_t kLeftOut = UINT32_MAX;
  static constexpr uint32_t kMost = INT32_MAX;  // tokens of a record
  static constexpr uint64_t kMaxKeyBytes = 16 << 20;

  struct Sums {
    uint64_t records = 0;
    uint64_t left_out = 0;
    uint64_t tokens = 0;  // of the others
    bool operator==(const Sums&) const = default;
  };

  // Each is kLeftOut or at most kMost.
  explicit TokenCounts(absl::Span<const uint32_t> counts);
  TokenCounts(std::vector<uint16_t> narrow, std::vector<uint32_t> wide, const Sums& sums)
      : narrow_(std::move(narrow)), wide_(std::move(wide)), sums_(sums) {}

  const Sums& sums() const { return sums_; }
  uint64_t size() const { return sums_.records; }
  // REQUIRES: ordinal < size().
  uint32_t operator[](uint64_t ordinal) const {
    if (narrow_.empty()) return wide_[ordinal];
    return narrow_[ordinal] == UINT16_MAX ? kLeftOut : narrow_[ordinal];
  }

  absl::Span<const uint16_t> narrow() const { return narrow_; }
  absl::Span<const uint32_t> wide() const { return wide_; }

 private:
  // One of the two is empty.
  std::vector<uint16_t> narrow_;
  std::vector<uint32_t> wide_;
  Sums sums_;
};

// What an index store is to call the data file whose index this is.
std::string TokenCountsName(const std::string& data_path, std::string_view key);

// Writes an index and nothing else to `file`.
absl::Status WriteTokenCounts(WrittenFile& file, const TokenCounts& counts, std::string_view key,
                              const IndexStamp& stamp);

struct FoundTokenCounts {
  TokenCounts::Sums sums;
  std::string place;
};

// Whether a sound index of that key lies in a place of the store, by its head alone. NotFound where there is none; DataLoss with the reason
// for one that cannot be used.
absl::StatusOr<FoundTokenCounts> LookAtTokenCounts(RandomAccessFile& data, std::string_view key,
                                                   IndexStore& store);
// The same, and reads it.
absl::StatusOr<std::shared_ptr<const TokenCounts>> LoadTokenCounts(RandomAccessFile& data,
                                                                   std::string_view key,
                                                                   IndexStore& store);

// Where it was written. Unavailable while somebody else writes one.
absl::StatusOr<std::string> KeepTokenCounts(RandomAccessFile& data, std::string_view key,
                                            const TokenCounts& counts, IndexStore& store);

}  // namespace penstock
