// What the bytes of a FLAC, OGG or MP3 file tell before anything is decoded. libsndfile's decoders
// leave out what is damaged and go on; these functions go through the file's own frames or pages
// first, so that a cut or damaged file is an error.
//
// FLAC:  RFC 9639. The frames' checksums are the decoder's affair.
// OGG:   RFC 3533, one stream of Vorbis or Opus (RFC 7845). Every page's checksum, number and place
//        in time, and the mark of the last page.
// MP3:   ISO/IEC 11172-3 and 13818-3, layer III. Every frame's head and length, and the count that
//        a Xing or Info frame tells. Frames have no checksum that encoders write, so a changed bit
//        inside of one may stay unseen.
//
// Threads:  safe from any thread.
// Owns:     nothing.
// Cost:     one pass over the pages of OGG (checksums), over the frames' heads of MP3; of FLAC only
//           the head is read.
//
// Errors are DataLoss: "FLAC data is damaged: ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/codec/damaged.h"

namespace penstock {

enum class SoundFormat : uint8_t { kUnknown, kWav, kFlac, kOgg, kMp3 };

// By the first bytes. Tags in front (ID3v2) are passed over; `begin` is the offset behind them.
SoundFormat FindSoundFormat(absl::Span<const uint8_t> file, size_t* begin);
// "FLAC", for errors.
const char* SoundFormatName(SoundFormat format);

template <typename... Words>
absl::Status DamagedSound(SoundFormat format, const Words&... words) {
  return DamagedData(SoundFormatName(format), words...);
}

struct SoundHead {
  // Of each channel: exact, or -1 where only decoding tells.
  int64_t samples = -1;
  // Fewer, or more, are damage. For MP3 alone, whose encoders may have added some that the decoder
  // takes away.
  int64_t samples_min = 0;
  // No sound file of that many bytes makes more.
  int64_t samples_max = 0;
  int64_t channels = 0;
  int32_t sample_rate = 0;  // 0: only the decoder tells
  bool is_opus = false;     // of OGG
  // What a decoder is to be given: `lead`, and behind it file[begin, end). It leaves out tags and
  // pictures.
  std::string lead;
  size_t begin = 0;
  size_t end = 0;
};

// REQUIRES: FindSoundFormat() found that format, and `begin`.
absl::StatusOr<SoundHead> ReadFlacHead(absl::Span<const uint8_t> file, size_t begin);
absl::StatusOr<SoundHead> ReadOggHead(absl::Span<const uint8_t> file);
absl::StatusOr<SoundHead> ReadMp3Head(absl::Span<const uint8_t> file, size_t begin);

}  // namespace penstock
