#include "server/codec/sound_head.h"

#include <cstring>
#include <string_view>

namespace penstock {
namespace {

constexpr size_t kId3HeadBytes = 10;

bool Begins(absl::Span<const uint8_t> bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

// Of an ID3v2 tag at the beginning of `bytes`; 0 if there is none.
size_t Id3Bytes(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kId3HeadBytes || !Begins(bytes, "ID3")) return 0;
  size_t size = 0;
  for (size_t i = 6; i < kId3HeadBytes; ++i) {
    if (bytes[i] > 127) return 0;
    size = size << 7 | bytes[i];
  }
  constexpr uint8_t kHasFooter = 0x10;
  return kId3HeadBytes + size + ((bytes[5] & kHasFooter) != 0 ? kId3HeadBytes : 0);
}

}  // namespace

SoundFormat FindSoundFormat(absl::Span<const uint8_t> file, size_t* begin) {
  *begin = 0;
  if (Begins(file, "RIFF")) return SoundFormat::kWav;
  if (Begins(file, "OggS")) return SoundFormat::kOgg;
  while (const size_t tag = Id3Bytes(file.subspan(*begin))) {
    if (tag > file.size() - *begin) return SoundFormat::kUnknown;
    *begin += tag;
  }
  const absl::Span<const uint8_t> rest = file.subspan(*begin);
  if (Begins(rest, "fLaC")) return SoundFormat::kFlac;
  if (rest.size() >= 2 && rest[0] == 0xff && (rest[1] & 0xe0) == 0xe0) return SoundFormat::kMp3;
  return SoundFormat::kUnknown;
}

const char* SoundFormatName(SoundFormat format) {
  switch (format) {
    case SoundFormat::kWav:
      return "WAV";
    case SoundFormat::kFlac:
      return "FLAC";
    case SoundFormat::kOgg:
      return "OGG";
    case SoundFormat::kMp3:
      return "MP3";
    case SoundFormat::kUnknown:
      break;
  }
  return "sound";
}

}  // namespace penstock
