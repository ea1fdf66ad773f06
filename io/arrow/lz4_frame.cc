#include "io/arrow/lz4_frame.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "io/arrow/lz4_block.h"

namespace penstock {
namespace {

constexpr uint32_t kMagic = 0x184D2204;
constexpr uint8_t kVersionMask = 0xC0, kVersion = 0x40;
constexpr uint8_t kBlocksAreAlone = 0x20, kHasBlockSums = 0x10, kHasSize = 0x08, kHasSum = 0x04;
constexpr uint8_t kReserved = 0x02, kHasDictionary = 0x01;
constexpr uint32_t kIsPlain = 0x80000000;
// Of a block beside its bytes, as StopLook counts it.
constexpr uint64_t kBlockWork = 64;

uint32_t Load32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

uint32_t TurnLeft(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

// xxHash of 32 bits with the seed 0.
uint32_t SumOf(absl::Span<const uint8_t> bytes) {
  constexpr uint32_t kPrimes[] = {2654435761, 2246822519, 3266489917, 668265263, 374761393};
  const uint8_t* at = bytes.data();
  const uint8_t* const end = at + bytes.size();
  uint32_t sum = kPrimes[4];
  if (bytes.size() >= 16) {
    uint32_t lanes[] = {kPrimes[0] + kPrimes[1], kPrimes[1], 0, 0 - kPrimes[0]};
    InPieces(
        bytes.size() / 16,
        [&](size_t, size_t some) {
          for (size_t turn = 0; turn < some; ++turn, at += 16) {
            for (int i = 0; i < 4; ++i)
              lanes[i] = TurnLeft(lanes[i] + Load32(at + 4 * i) * kPrimes[1], 13) * kPrimes[0];
          }
        },
        kPieceBytes / 16);
    sum = TurnLeft(lanes[0], 1) + TurnLeft(lanes[1], 7) + TurnLeft(lanes[2], 12) +
          TurnLeft(lanes[3], 18);
  }
  sum += static_cast<uint32_t>(bytes.size());
  for (; end - at >= 4; at += 4) sum = TurnLeft(sum + Load32(at) * kPrimes[2], 17) * kPrimes[3];
  for (; at < end; ++at) sum = TurnLeft(sum + *at * kPrimes[4], 11) * kPrimes[0];
  sum = (sum ^ sum >> 15) * kPrimes[1];
  sum = (sum ^ sum >> 13) * kPrimes[2];
  return sum ^ sum >> 16;
}

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(what); }

// What stands in front of the blocks.
struct Head {
  uint8_t flags = 0;
  uint32_t max_block_bytes = 0;
  size_t bytes = 0;
};

absl::Status ReadHead(absl::Span<const uint8_t> frame, uint64_t plain_bytes, Head* head) {
  constexpr size_t kLeastBytes = 7;
  if (frame.size() < kLeastBytes || Load32(frame.data()) != kMagic)
    return Damaged("it is no LZ4 frame");
  head->flags = frame[4];
  const uint8_t block_size = frame[5] >> 4;
  if ((head->flags & kVersionMask) != kVersion || (head->flags & kReserved) != 0 ||
      (frame[5] & 0x0F) != 0 || block_size < 4 || block_size > 7)
    return Damaged("its LZ4 frame is of a form that is not known");
  if ((head->flags & kHasDictionary) != 0) return Damaged("its LZ4 frame needs a dictionary");
  head->max_block_bytes = uint32_t{1} << (2 * block_size + 8);
  head->bytes = kLeastBytes + ((head->flags & kHasSize) != 0 ? 8 : 0);
  if (frame.size() < head->bytes) return Damaged("its LZ4 frame is cut");
  const uint8_t sum = SumOf(frame.subspan(4, head->bytes - 5)) >> 8;
  if (sum != frame[head->bytes - 1])
    return Damaged("the checksum of its LZ4 frame's head does not hold");
  if ((head->flags & kHasSize) != 0) {
    uint64_t said;
    std::memcpy(&said, frame.data() + 6, sizeof(said));
    if (said != plain_bytes) {
      return Damaged(
          absl::StrCat("its LZ4 frame says that it holds ", said, " bytes, not ", plain_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status UnpackLz4Frame(absl::Span<const uint8_t> frame, absl::Span<uint8_t> plain) {
  Head head;
  if (absl::Status status = ReadHead(frame, plain.size(), &head); !status.ok()) return status;
  frame.remove_prefix(head.bytes);
  const bool has_block_sums = (head.flags & kHasBlockSums) != 0;
  uint8_t* out = plain.data();
  uint8_t* const end = out + plain.size();
  StopLook look;
  while (true) {
    if (frame.size() < 4) return Damaged("its LZ4 frame is cut");
    const uint32_t size = Load32(frame.data());
    frame.remove_prefix(4);
    if (size == 0) break;
    const size_t bytes = size & ~kIsPlain;
    if (bytes > head.max_block_bytes) return Damaged("a block of its LZ4 frame is too long");
    if (frame.size() < bytes + (has_block_sums ? 4 : 0)) return Damaged("its LZ4 frame is cut");
    const absl::Span<const uint8_t> block = frame.first(bytes);
    if (has_block_sums && SumOf(block) != Load32(frame.data() + bytes))
      return Damaged("the checksum of a block of its LZ4 frame does not hold");
    frame.remove_prefix(bytes + (has_block_sums ? 4 : 0));
    const size_t room = std::min<size_t>(end - out, head.max_block_bytes);
    const uint8_t* const before = out;
    look.Did(bytes + kBlockWork);
    if ((size & kIsPlain) != 0) {
      if (bytes > room) return Damaged("its LZ4 frame holds more bytes");
      if (bytes > 0) std::memcpy(out, block.data(), bytes);
      out += bytes;
      continue;
    }
    const bool is_alone = (head.flags & kBlocksAreAlone) != 0;
    uint8_t* const next = UnpackLz4Block(block, is_alone ? out : plain.data(), out, out + room);
    if (next == nullptr) return Damaged("a block of its LZ4 frame is damaged, or holds more bytes");
    out = next;
    look.Did(static_cast<uint64_t>(out - before));
  }
  if (out != end) {
    return Damaged(
        absl::StrCat("its LZ4 frame holds ", out - plain.data(), " bytes, not ", plain.size()));
  }
  const bool has_sum = (head.flags & kHasSum) != 0;
  if (frame.size() != (has_sum ? 4 : 0))
    return Damaged(frame.size() < 4 ? "its LZ4 frame is cut" : "bytes stand behind its LZ4 frame");
  if (has_sum && SumOf(plain) != Load32(frame.data()))
    return Damaged("the checksum of its LZ4 frame does not hold");
  return absl::OkStatus();
}

}  // namespace penstock
