#include "base/byte_order.h"
#include "server/codec/sound_head.h"

namespace penstock {
namespace {

constexpr size_t kMarkBytes = 4;
constexpr size_t kBlockHeadBytes = 4;
constexpr size_t kStreamInfoBytes = 34;
constexpr uint8_t kStreamInfo = 0;
constexpr uint8_t kForbidden = 127;
constexpr uint8_t kIsLast = 0x80;
// Of a frame: 6 of its head and number, 1 of a subframe, 2 of its checksum.
constexpr int64_t kFrameBytesMin = 9;
constexpr int64_t kFrameSamplesMax = 65536;

}  // namespace

absl::StatusOr<SoundHead> ReadFlacHead(absl::Span<const uint8_t> file, size_t begin) {
  SoundHead head;
  size_t at = begin + kMarkBytes;
  for (bool is_first = true, is_last = false; !is_last; is_first = false) {
    if (file.size() - at < kBlockHeadBytes)
      return DamagedSound(SoundFormat::kFlac, "it ends in its head");
    const uint8_t type = file[at] & ~kIsLast;
    is_last = (file[at] & kIsLast) != 0;
    const size_t bytes = LoadBig<uint32_t, 3>(&file[at + 1]);
    at += kBlockHeadBytes;
    if (bytes > file.size() - at) {
      return DamagedSound(SoundFormat::kFlac, "a block of ", bytes, " bytes at offset ", at,
                          ", of which the file has ", file.size() - at);
    }
    if (is_first != (type == kStreamInfo) || type == kForbidden)
      return DamagedSound(SoundFormat::kFlac, "a block of type ", type, " at offset ", at);
    if (is_first) {
      if (bytes != kStreamInfoBytes)
        return DamagedSound(SoundFormat::kFlac, "expected a first block of ", kStreamInfoBytes,
                            " bytes, found ", bytes);
      const uint64_t form = LoadBig<uint64_t>(&file[at + 10]);
      head.sample_rate = static_cast<int32_t>(form >> 44);
      head.channels = static_cast<int64_t>(form >> 41 & 7) + 1;
      const auto samples = static_cast<int64_t>(form & ((uint64_t{1} << 36) - 1));
      // What a program writes that cannot go back to the head of the file.
      head.samples = samples > 0 ? samples : -1;
      head.lead.assign(reinterpret_cast<const char*>(&file[begin]), at + bytes - begin);
      head.lead[kMarkBytes] = static_cast<char>(kIsLast);
    }
    at += bytes;
  }
  if (head.sample_rate == 0) return DamagedSound(SoundFormat::kFlac, "a sample rate of 0 a second");
  head.begin = at;
  head.end = file.size();
  head.samples_max = static_cast<int64_t>(head.end - at) / kFrameBytesMin * kFrameSamplesMax;
  if (head.samples > head.samples_max) {
    return DamagedSound(SoundFormat::kFlac, "expected ", head.samples, " samples, more than its ",
                        head.end - at, " bytes of frames can hold");
  }
  return head;
}

}  // namespace penstock
