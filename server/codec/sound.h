// Decodes sound files to float32 samples: WAV as WavDecoder does, FLAC, OGG (Vorbis, Opus) and MP3
// by libsndfile, with its values. Damaged and cut files are errors (server/codec/sound_head.h),
// where libsndfile gives what it can.
//
// Threads:  one decoder, one thread.
// Owns:     libsndfile's state; never the file, which must stay until Decode().
// Limits:   kSoundChannelsMax, and kSoundValuesMax of all channels.
// Cost:     libsndfile's own, and a look at each page or frame's head. A FLAC file that does not
//           tell its length is decoded twice: Start() counts.
//
// Errors are DataLoss, but FailedPrecondition while there is no libsndfile that reads the format.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/codec/sndfile.h"
#include "server/codec/sound_head.h"
#include "server/codec/sound_limits.h"
#include "server/codec/wav.h"

namespace penstock {

using SoundShape = WavShape;

class SoundDecoder {
 public:
  SoundDecoder() = default;
  ~SoundDecoder();
  SoundDecoder(const SoundDecoder&) = delete;
  SoundDecoder& operator=(const SoundDecoder&) = delete;

  // Reads what is in front of the samples, and checks the file. REQUIRES: called once.
  absl::StatusOr<SoundShape> Start(absl::Span<const uint8_t> file);

  // Writes `samples` times `channels` values. What the file has beyond them is left out; of samples
  // that it does not have there are zeros, and of channels the last one again. REQUIRES: Start()
  // succeeded; called once.
  absl::Status Decode(int64_t samples, int64_t channels, float* out);

 private:
  // The decoder's file: a lead of our own, and a part of the user's.
  struct Parts {
    absl::Span<const uint8_t> lead, rest;
    int64_t position = 0;
    int64_t size() const { return static_cast<int64_t>(lead.size() + rest.size()); }
  };

  static int64_t Size(void* parts);
  static int64_t Seek(int64_t offset, int32_t whence, void* parts);
  static int64_t Read(void* to, int64_t bytes, void* parts);
  static int64_t Write(const void* from, int64_t bytes, void* parts);
  static int64_t Tell(void* parts);

  friend absl::StatusOr<int32_t> SoundSampleRate(absl::Span<const uint8_t> file);

  // Start() of a file whose head has been read.
  absl::StatusOr<SoundShape> StartBehind(SoundFormat format, SoundHead head,
                                         absl::Span<const uint8_t> file);
  absl::Status Open(absl::Span<const uint8_t> file);
  // Decodes a file that does not tell its length, and keeps nothing of it.
  absl::Status CountSamples();
  // The next `samples`, in the file's channels.
  absl::Status ReadSamples(int64_t samples, float* out);
  absl::Status Damaged(absl::string_view what) const;

  SoundFormat format_ = SoundFormat::kUnknown;
  SoundShape shape_;
  SoundHead head_;
  WavDecoder wav_;
  Parts parts_;
  const sndfile::Library* library_ = nullptr;
  sndfile::SndFile* file_ = nullptr;
  int64_t samples_read_ = 0;
};

// Samples a second, by the head of the file alone where that tells it.
absl::StatusOr<int32_t> SoundSampleRate(absl::Span<const uint8_t> file);

}  // namespace penstock
