#include "server/codec/wav.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/byte_order.h"
#include "base/stop_flag.h"
#include "server/codec/damaged.h"
#include "server/codec/sound_limits.h"

namespace penstock {
namespace {

constexpr size_t kChunkHeadBytes = 8;
constexpr size_t kFileHeadBytes = 12;
// What a program writes that cannot go back to the head of the file.
constexpr uint32_t kUnknownBytes = 0xffffffff;

float FromUint8(const uint8_t* p) { return static_cast<float>(*p - 128) / 128; }
float FromInt16(const uint8_t* p) { return static_cast<float>(LoadLittle<int16_t>(p)) / 32768; }
float FromInt24(const uint8_t* p) {
  // The sign is in the highest byte.
  return static_cast<float>((p[0] | p[1] << 8) + static_cast<int8_t>(p[2]) * 65536) / 8388608;
}
float FromInt32(const uint8_t* p) {
  return static_cast<float>(LoadLittle<int32_t>(p)) / 2147483648.0F;
}
float FromFloat64(const uint8_t* p) { return static_cast<float>(LoadLittle<double>(p)); }

bool Begins(const uint8_t* p, std::string_view name) {
  return std::memcmp(p, name.data(), name.size()) == 0;
}

template <typename... Words>
absl::Status Damaged(const Words&... words) {
  return DamagedData("WAV", words...);
}

}  // namespace

absl::Status WavDecoder::ReadFormat(const uint8_t* chunk, size_t size) {
  if (size < 16) return Damaged("a format of 16 bytes at least, found ", size);
  int tag = LoadLittle<uint16_t>(chunk);
  shape_.channels = LoadLittle<uint16_t>(chunk + 2);
  const auto rate = LoadLittle<uint32_t>(chunk + 4);
  const int64_t frame_bytes = LoadLittle<uint16_t>(chunk + 12);
  const int bits = LoadLittle<uint16_t>(chunk + 14);
  // The first two bytes of an identifier tell what "extensible" is.
  constexpr int kPcm = 1, kFloat = 3, kExtensible = 0xfffe;
  if (tag == kExtensible && size >= 26) tag = LoadLittle<uint16_t>(chunk + 24);
  if (shape_.channels < 1 || shape_.channels > kSoundChannelsMax) {
    return Damaged("expected 1 to ", kSoundChannelsMax, " channels, found ", shape_.channels);
  }
  if (rate == 0 || rate > INT32_MAX) return Damaged("a sample rate of ", rate, " a second");
  shape_.sample_rate = static_cast<int32_t>(rate);
  if (tag == kPcm && bits == 8) {
    encoding_ = Encoding::kUint8;
  } else if (tag == kPcm && bits == 16) {
    encoding_ = Encoding::kInt16;
  } else if (tag == kPcm && bits == 24) {
    encoding_ = Encoding::kInt24;
  } else if (tag == kPcm && bits == 32) {
    encoding_ = Encoding::kInt32;
  } else if (tag == kFloat && bits == 32) {
    encoding_ = Encoding::kFloat32;
  } else if (tag == kFloat && bits == 64) {
    encoding_ = Encoding::kFloat64;
  } else {
    return absl::DataLossError(absl::StrCat(
        "WAV file of another encoding than PCM of 8, 16, 24 or 32 bits and floats: format ", tag,
        " of ", bits, " bits"));
  }
  sample_bytes_ = bits / 8;
  if (frame_bytes != sample_bytes_ * shape_.channels) {
    return Damaged("expected ", sample_bytes_ * shape_.channels,
                   " bytes for a sample of all channels, found ", frame_bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<WavShape> WavDecoder::Start(const uint8_t* file, size_t size) {
  if (size < kFileHeadBytes || !Begins(file, "RIFF") || !Begins(file + 8, "WAVE"))
    return absl::DataLossError(absl::StrCat("no WAV file by its first bytes: ", size, " bytes"));
  shape_ = {};
  size_t at = kFileHeadBytes;
  while (size - at >= kChunkHeadBytes) {
    const uint8_t* const chunk = file + at;
    const auto said = LoadLittle<uint32_t>(chunk + 4);
    at += kChunkHeadBytes;
    const size_t left = size - at;
    const bool is_data = Begins(chunk, "data");
    const size_t bytes = is_data && said == kUnknownBytes ? left : said;
    if (bytes > left) {
      return Damaged("a chunk of ", bytes, " bytes at offset ", at, ", of which the file has ",
                     left);
    }
    if (Begins(chunk, "fmt ")) {
      if (absl::Status status = ReadFormat(file + at, bytes); !status.ok()) return status;
    } else if (is_data) {
      if (shape_.channels == 0) return Damaged("samples before their format");
      samples_ = file + at;
      // What is less than a sample of all channels at the end is none.
      shape_.samples = static_cast<int64_t>(bytes) / (sample_bytes_ * shape_.channels);
      return shape_;
    }
    at += std::min(left, bytes + bytes % 2);
  }
  return Damaged("no samples");
}

template <float (*sample)(const uint8_t* bytes)>
void WavDecoder::DecodeBy(int64_t samples, int64_t channels, float* out) const {
  const uint8_t* from = samples_;
  StopLook look;
  for (int64_t i = 0; i < samples; ++i, from += sample_bytes_ * shape_.channels) {
    look.Did(static_cast<uint64_t>(channels) * sizeof(float));
    for (int64_t c = 0; c < channels; ++c)
      *out++ = sample(from + std::min(c, shape_.channels - 1) * sample_bytes_);
  }
}

void WavDecoder::Decode(int64_t samples, int64_t channels, float* out) const {
  const int64_t there = std::min(samples, shape_.samples);
  std::fill_n(out + there * channels, (samples - there) * channels, 0.0F);
  switch (encoding_) {
    case Encoding::kUint8:
      return DecodeBy<FromUint8>(there, channels, out);
    case Encoding::kInt16:
      return DecodeBy<FromInt16>(there, channels, out);
    case Encoding::kInt24:
      return DecodeBy<FromInt24>(there, channels, out);
    case Encoding::kInt32:
      return DecodeBy<FromInt32>(there, channels, out);
    case Encoding::kFloat32:
      return DecodeBy<LoadLittle<float>>(there, channels, out);
    case Encoding::kFloat64:
      return DecodeBy<FromFloat64>(there, channels, out);
  }
}

}  // namespace penstock
