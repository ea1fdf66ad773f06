#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/byte_order.h"
#include "server/codec/sound_head.h"

namespace penstock {
namespace {

constexpr size_t kFrameHeadBytes = 4;
constexpr uint8_t kHasFrames = 1;  // of a Xing frame's flags
// What encoders add in front and behind for the decoder's sake, at most: two numbers of 12 bits.
constexpr int64_t kAddedSamplesMax = 2 * 4095;

struct Frame {
  int version = 0;  // 0: MPEG 2.5, 2: MPEG 2, 3: MPEG 1; as the head has it
  int rate_index = 0;
  int32_t sample_rate = 0;
  int channels = 0;
  int samples = 0;
  size_t bytes = 0;

  bool IsLike(const Frame& other) const {
    return version == other.version && rate_index == other.rate_index && channels == other.channels;
  }
  // Where a Xing or Info frame has its name: behind what would tell how the sound is coded.
  size_t name_at() const {
    return kFrameHeadBytes + (version == 3 ? (channels == 1 ? 17 : 32) : (channels == 1 ? 9 : 17));
  }
};

// False if these are no four bytes with which a frame of layer III can begin.
bool ReadFrame(const uint8_t* head, Frame* frame) {
  // Thousands of bits a second.
  constexpr int kBitRates[2][15] = {
      {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
      {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}};
  constexpr int kSampleRates[3] = {44100, 48000, 32000};
  constexpr int kLayer3 = 1, kReserved = 1, kMono = 3;
  if (head[0] != 0xff || (head[1] & 0xe0) != 0xe0) return false;
  const int version = head[1] >> 3 & 3, layer = head[1] >> 1 & 3;
  const int bits = head[2] >> 4, rate = head[2] >> 2 & 3, padding = head[2] >> 1 & 1;
  if (version == kReserved || layer != kLayer3 || bits == 0 || bits == 15 || rate == 3)
    return false;
  const bool is_mpeg1 = version == 3;
  frame->version = version;
  frame->rate_index = rate;
  frame->sample_rate = kSampleRates[rate] >> (is_mpeg1 ? 0 : version == 2 ? 1 : 2);
  frame->channels = head[3] >> 6 == kMono ? 1 : 2;
  frame->samples = is_mpeg1 ? 1152 : 576;
  // An eighth of the bits that the frame's time has.
  frame->bytes = static_cast<size_t>(
      frame->samples / 8 * kBitRates[is_mpeg1 ? 1 : 0][bits] * 1000 / frame->sample_rate + padding);
  return true;
}

// Whether nothing but a tag stands here, or zeros.
bool IsBehindSound(absl::Span<const uint8_t> rest) {
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  return text.starts_with("TAG") || text.starts_with("APETAGEX") ||
         text.starts_with("LYRICSBEGIN") || text.find_first_not_of('\0') == std::string_view::npos;
}

// A Xing frame for a file that has none, so that the decoder need not guess the length of the file.
// It leaves out its own delay then, 529 samples, as for any file with such a frame.
std::string XingFrame(const uint8_t* first, int64_t frames) {
  constexpr uint8_t kWithoutChecksum = 1, kBitRate = 9;
  uint8_t head[kFrameHeadBytes];
  std::copy_n(first, kFrameHeadBytes, head);
  head[1] |= kWithoutChecksum;
  head[2] = static_cast<uint8_t>(kBitRate << 4 | (head[2] & 0x0c));
  Frame frame;
  ReadFrame(head, &frame);
  std::string bytes(frame.bytes, '\0');
  std::copy_n(head, kFrameHeadBytes, bytes.begin());
  size_t at = frame.name_at();
  for (const char c : {'X', 'i', 'n', 'g'}) bytes[at++] = c;
  bytes[at + 3] = kHasFrames;
  for (int i = 0; i < 4; ++i) bytes[at + 4 + i] = static_cast<char>(frames >> (24 - 8 * i));
  return bytes;
}

}  // namespace

absl::StatusOr<SoundHead> ReadMp3Head(absl::Span<const uint8_t> file, size_t begin) {
  Frame first;
  int64_t frames = 0;
  size_t at = begin;
  while (at < file.size()) {
    const size_t left = file.size() - at;
    Frame frame;
    if (left < kFrameHeadBytes || !ReadFrame(&file[at], &frame)) {
      if (frames > 0 && IsBehindSound(file.subspan(at))) break;
      return DamagedSound(SoundFormat::kMp3, "no frame of layer III at offset ", at);
    }
    if (frames == 0) first = frame;
    if (!frame.IsLike(first)) {
      return DamagedSound(SoundFormat::kMp3, "a frame at offset ", at, " of ", frame.channels,
                          " channels and ", frame.sample_rate,
                          " samples a second, behind others of ", first.channels, " and ",
                          first.sample_rate);
    }
    if (frame.bytes > left) {
      return DamagedSound(SoundFormat::kMp3, "a frame of ", frame.bytes, " bytes at offset ", at,
                          ", of which the file has ", left);
    }
    at += frame.bytes;
    ++frames;
  }
  if (frames == 0) return DamagedSound(SoundFormat::kMp3, "no frame");
  const uint8_t* const name = &file[begin] + first.name_at();
  const bool has_count = [&] {
    return first.bytes >= first.name_at() + 12 &&
           (std::memcmp(name, "Xing", 4) == 0 || std::memcmp(name, "Info", 4) == 0) &&
           (name[7] & kHasFrames) != 0;
  }();
  if (has_count) {
    --frames;
    if (const int64_t said = LoadBig<uint32_t>(name + 8); said != frames)
      return DamagedSound(SoundFormat::kMp3, "expected ", said, " frames, found ", frames);
  }
  SoundHead head;
  head.channels = first.channels;
  head.sample_rate = first.sample_rate;
  head.samples_max = frames * first.samples;
  head.samples_min = std::max<int64_t>(0, head.samples_max - kAddedSamplesMax);
  if (!has_count) head.lead = XingFrame(&file[begin], frames);
  head.begin = begin;
  head.end = at;
  return head;
}

}  // namespace penstock
