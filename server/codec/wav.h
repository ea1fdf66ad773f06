// Decodes WAV files to float32 samples of -1 to 1, with the values of TensorFlow's decode_wav where
// that reads them: PCM of 16 bits. PCM of 8, 24 and 32 bits and floats of 32 and 64 bits are read
// as libsndfile reads them.
//
// The format: "Multimedia Programming Interface and Data Specifications 1.0" (RIFF), and
// WAVE_FORMAT_EXTENSIBLE of Windows' headers. Chunks other than "fmt " and "data" are passed over;
// one of an odd number of bytes is followed by a byte that counts for nothing.
//
// Threads:  one decoder, one thread.
// Owns:     nothing; the file must stay until Decode().
// Limits:   kSoundChannelsMax.
// Cost:     one pass over the samples.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

struct WavShape {
  int64_t samples = 0;  // of each channel
  int64_t channels = 0;
  int32_t sample_rate = 0;  // a second
};

class WavDecoder {
 public:
  // DataLoss when this is no WAV file that can be decoded, or one that ends too early.
  absl::StatusOr<WavShape> Start(const uint8_t* file, size_t size);

  // Writes `samples` times `channels` values. What the file has beyond them is left out; of samples
  // that it does not have there are zeros, and of channels the last one again. REQUIRES: Start().
  void Decode(int64_t samples, int64_t channels, float* out) const;

 private:
  enum class Encoding : uint8_t { kUint8, kInt16, kInt24, kInt32, kFloat32, kFloat64 };

  absl::Status ReadFormat(const uint8_t* chunk, size_t size);
  template <float (*sample)(const uint8_t* bytes)>
  void DecodeBy(int64_t samples, int64_t channels, float* out) const;

  WavShape shape_;
  Encoding encoding_ = Encoding::kInt16;
  int64_t sample_bytes_ = 0;
  const uint8_t* samples_ = nullptr;
};

}  // namespace penstock
