// The head of a tar member: its header of 512 bytes, and what stands in front of that for a path or
// size that it has no room for.
//
//   0       100    124    136       148       156    157       257       265    345      500
//   ┌───────┬──────┬──────┬─────────┬─────────┬──────┬─────────┬─────────┬──────┬────────┐
//   │ path  │ mode │ size │ time of │ sum of  │ type │ link's  │ "ustar" │ …    │ prefix │
//   │       │ …    │      │ change  │ all 512 │      │ target  │ version │      │ of path│
//   └───────┴──────┴──────┴─────────┴─────────┴──────┴─────────┴─────────┴──────┴────────┘
//
// Numbers are octal text; a size above 8 GiB is a big-endian number behind a byte of 0x80 (GNU).
// While the sum is computed its own field counts as spaces. Data begins behind the header and fills
// whole blocks of 512. A member of type L (GNU) has the path of the next one as its data, one of
// type x (pax, POSIX.1-2001) lines "LENGTH KEY=VALUE\n" that tell of it. A block of zeros ends the
// archive.
//
// Threads:  any; no state.
// Limits:   kMaxTarPathBytes of all that stands in front of a member's header.
// Cost:     the sum of each header's 512 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {

inline constexpr size_t kTarBlockBytes = 512;
inline constexpr size_t kMaxTarPathBytes = 1 << 20;

// Has the heads brought nearer that are to come, where members have the sizes of those some places
// before them. A head lies in a page of its own, which no processor fetches by itself.
class TarHeadsAhead {
 public:
  // Of bytes that lie in memory: the head that is looked at is at bytes[at].
  void At(absl::Span<const uint8_t> bytes, uint64_t at) {
    // Until there are as many behind it, those of fewer samples.
    const size_t back = std::min(next_ / 2 * 2, kHeads);
    const uint64_t before = places_[(next_ - back) % kHeads];
    places_[next_++ % kHeads] = at;
    if (back == 0) return;
    const uint64_t ahead = at + (at - before);
    if (ahead > bytes.size() || bytes.size() - ahead < kTarBlockBytes) return;
    for (size_t line = 0; line < kTarBlockBytes; line += 64)
      __builtin_prefetch(bytes.data() + ahead + line);
  }

 private:
  // A multiple of what most samples have.
  static constexpr size_t kHeads = 12;
  uint64_t places_[kHeads] = {};
  size_t next_ = 0;
};

// What a member takes in its archive, `size` bytes of data padded.
inline uint64_t TarPadded(uint64_t size) {
  return (size + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

struct TarHead {
  enum class Found {
    kMember,
    kNeedsMore,  // than the bytes that are there: `bytes` of them, or up to the file's end
    kEnd,        // a block of zeros
    kDamaged,    // `what` says how
    kRefused,    // sound, and of a kind that is not read: `what` says which
  };

  uint64_t bytes = 0;  // of the head: up to the member's data
  uint64_t size = 0;   // of its data
  char type = '0';
  std::string what;

  // The path, as long as the bytes are there.
  absl::string_view path;
  std::string joined;  // what it lies in, where it is of two parts

  void Clear() {
    bytes = size = 0;
    type = '0';
    what.clear();
    path = {};
    joined.clear();
  }

  // Files that have data of their own; others are links, folders, devices.
  bool is_regular() const { return type == '0' || type == '\0' || type == '7'; }
};

// The head that `bytes` begin with. What `head` held before is gone.
TarHead::Found ReadTarHead(absl::Span<const uint8_t> bytes, TarHead* head);

// Whether a header could be there: its sum holds, and it is not zeros alone.
bool IsTarHeader(const uint8_t* block);
// What the block's own field of a path says, however damaged the rest.
absl::string_view TarPathField(const uint8_t* block);
// Whether its type says that it stands in front of a member's header; its own path is of no member
// then.
bool IsTarPathHeader(const uint8_t* block);

// The two parts of a member's path, as WebDataset splits it: the key is all up to the first dot of
// the last component, the extension what is behind it. False where it has none. Both are parts of
// `path`.
bool SplitTarPath(absl::string_view path, absl::string_view* key, absl::string_view* extension);
// Whether the member is one of those that describe the archive, such as `__meta__`, and not a
// sample.
bool IsTarMeta(absl::string_view path);

}  // namespace penstock
