#include "server/codec/sound.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// Decoded between two looks for a stop: a millisecond or so.
constexpr int64_t kBlockSamples = 16384;

int32_t FormatInLibrary(SoundFormat format) {
  switch (format) {
    case SoundFormat::kFlac:
      return sndfile::kFlac;
    case SoundFormat::kOgg:
      return sndfile::kOgg;
    default:
      return sndfile::kMpeg;
  }
}

// By which the library lists what it can read.
int32_t ListedFormat(SoundFormat format, const SoundHead& head) {
  switch (format) {
    case SoundFormat::kFlac:
      return sndfile::kFlac;
    case SoundFormat::kOgg:
      return head.is_opus ? sndfile::kOpus : sndfile::kVorbis;
    default:
      return sndfile::kMpegLayer3;
  }
}

absl::Status NoSound(absl::Span<const uint8_t> file) {
  return absl::DataLossError(
      absl::StrCat("no WAV, FLAC, OGG or MP3 file by its first bytes: ", file.size(), " bytes"));
}

// Of FLAC, OGG and MP3.
absl::StatusOr<SoundHead> ReadHead(SoundFormat format, absl::Span<const uint8_t> file,
                                   size_t begin) {
  switch (format) {
    case SoundFormat::kFlac:
      return ReadFlacHead(file, begin);
    case SoundFormat::kOgg:
      return ReadOggHead(file);
    case SoundFormat::kMp3:
      return ReadMp3Head(file, begin);
    default:
      return NoSound(file);
  }
}

// Copies samples of `from_channels` to samples of `channels`: those beyond are left out, the last
// one fills up what is missing.
void CopyChannels(const float* from, int64_t from_channels, int64_t samples, int64_t channels,
                  float* out) {
  for (int64_t i = 0; i < samples; ++i, from += from_channels) {
    for (int64_t c = 0; c < channels; ++c) *out++ = from[std::min(c, from_channels - 1)];
  }
}

}  // namespace

SoundDecoder::~SoundDecoder() {
  if (file_ != nullptr) library_->close(file_);
}

int64_t SoundDecoder::Size(void* parts) { return static_cast<Parts*>(parts)->size(); }
int64_t SoundDecoder::Tell(void* parts) { return static_cast<Parts*>(parts)->position; }
int64_t SoundDecoder::Write(const void*, int64_t, void*) { return 0; }

int64_t SoundDecoder::Seek(int64_t offset, int32_t whence, void* user) {
  Parts& parts = *static_cast<Parts*>(user);
  const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? parts.position : parts.size();
  int64_t to = 0;
  if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > parts.size()) return -1;
  return parts.position = to;
}

int64_t SoundDecoder::Read(void* to, int64_t bytes, void* user) {
  Parts& parts = *static_cast<Parts*>(user);
  const int64_t begin = parts.position;
  const auto lead = static_cast<int64_t>(parts.lead.size());
  while (bytes > 0 && parts.position < parts.size()) {
    const bool in_lead = parts.position < lead;
    const absl::Span<const uint8_t> part = in_lead ? parts.lead : parts.rest;
    const int64_t at = in_lead ? parts.position : parts.position - lead;
    const int64_t taken = std::min(bytes, static_cast<int64_t>(part.size()) - at);
    std::memcpy(to, part.data() + at, static_cast<size_t>(taken));
    to = static_cast<uint8_t*>(to) + taken;
    bytes -= taken;
    parts.position += taken;
  }
  return parts.position - begin;
}

absl::Status SoundDecoder::Damaged(absl::string_view what) const {
  return DamagedSound(format_, what);
}

absl::Status SoundDecoder::Open(absl::Span<const uint8_t> file) {
  parts_.lead = {reinterpret_cast<const uint8_t*>(head_.lead.data()), head_.lead.size()};
  parts_.rest = file.subspan(head_.begin, head_.end - head_.begin);
  parts_.position = 0;
  const auto library = sndfile::Load();
  if (!library.ok()) return library.status();
  library_ = *library;
  sndfile::VirtualFile calls{Size, Seek, Read, Write, Tell};
  sndfile::Info info;
  file_ = library_->open_virtual(&calls, sndfile::kRead, &info, &parts_);
  if (file_ == nullptr || (info.format & sndfile::kFormatMask) != FormatInLibrary(format_)) {
    if (absl::Status status = sndfile::CheckReads(*library_, ListedFormat(format_, head_));
        !status.ok())
      return status;
    // The library's reason is one for all threads, and could be another thread's by now.
    if (file_ == nullptr) return Damaged("libsndfile cannot open it");
    return Damaged(absl::StrCat("libsndfile takes it for format ", info.format));
  }
  if (info.channels < 1 || info.channels > kSoundChannelsMax || info.samplerate < 1 ||
      (head_.channels > 0 && info.channels != head_.channels)) {
    return Damaged(absl::StrCat("expected ", head_.channels, " channels, libsndfile found ",
                                info.channels, " of ", info.samplerate, " samples a second"));
  }
  shape_ = {.samples = head_.samples, .channels = info.channels, .sample_rate = info.samplerate};
  if (format_ == SoundFormat::kFlac) return absl::OkStatus();
  if (info.frames < head_.samples_min || info.frames > head_.samples_max) {
    return Damaged(absl::StrCat("expected ", head_.samples_min, " to ", head_.samples_max,
                                " samples, libsndfile found ", info.frames));
  }
  shape_.samples = info.frames;
  return absl::OkStatus();
}

absl::StatusOr<SoundShape> SoundDecoder::Start(absl::Span<const uint8_t> file) {
  size_t begin = 0;
  const SoundFormat format = FindSoundFormat(file, &begin);
  if (format == SoundFormat::kWav) {
    format_ = format;
    auto shape = wav_.Start(file.data(), file.size());
    if (shape.ok()) shape_ = *shape;
    return shape;
  }
  auto head = ReadHead(format, file, begin);
  if (!head.ok()) return head.status();
  return StartBehind(format, *std::move(head), file);
}

absl::StatusOr<SoundShape> SoundDecoder::StartBehind(SoundFormat format, SoundHead head,
                                                     absl::Span<const uint8_t> file) {
  format_ = format;
  head_ = std::move(head);
  if (absl::Status status = Open(file); !status.ok()) return status;
  if (shape_.samples < 0) {
    if (absl::Status status = CountSamples(); !status.ok()) return status;
    // From its beginning again.
    library_->close(std::exchange(file_, nullptr));
    if (absl::Status status = Open(file); !status.ok()) return status;
  }
  if (shape_.samples > kSoundValuesMax / shape_.channels) {
    return absl::DataLossError(absl::StrCat(SoundFormatName(format_),
                                            " sound longer than limit: ", shape_.samples, " x ",
                                            shape_.channels, " > ", kSoundValuesMax, " values"));
  }
  return shape_;
}

absl::Status SoundDecoder::CountSamples() {
  std::vector<float> block(static_cast<size_t>(kBlockSamples * shape_.channels));
  head_.samples = 0;
  while (head_.samples <= kSoundValuesMax / shape_.channels) {
    CheckStop();
    const int64_t got = library_->readf_float(file_, block.data(), kBlockSamples);
    if (library_->error(file_) != 0) return Damaged(library_->strerror(file_));
    head_.samples += std::max<int64_t>(0, got);
    if (got < kBlockSamples) break;
  }
  return absl::OkStatus();
}

absl::Status SoundDecoder::ReadSamples(int64_t samples, float* out) {
  while (samples > 0) {
    CheckStop();
    const int64_t wanted = std::min(samples, kBlockSamples);
    const int64_t got = library_->readf_float(file_, out, wanted);
    if (library_->error(file_) != 0) return Damaged(library_->strerror(file_));
    samples_read_ += std::max<int64_t>(0, got);
    if (got != wanted) {
      return Damaged(absl::StrCat("expected ", shape_.samples, " samples, found ", samples_read_));
    }
    samples -= got;
    out += got * shape_.channels;
  }
  return absl::OkStatus();
}

absl::Status SoundDecoder::Decode(int64_t samples, int64_t channels, float* out) {
  if (format_ == SoundFormat::kWav) {
    wav_.Decode(samples, channels, out);
    return absl::OkStatus();
  }
  int64_t left = std::min(samples, shape_.samples);
  std::fill_n(out + left * channels, (samples - left) * channels, 0.0F);
  if (channels == shape_.channels) return ReadSamples(left, out);
  std::vector<float> block(static_cast<size_t>(std::min(left, kBlockSamples) * shape_.channels));
  while (left > 0) {
    const int64_t count = std::min(left, kBlockSamples);
    if (absl::Status status = ReadSamples(count, block.data()); !status.ok()) return status;
    CopyChannels(block.data(), shape_.channels, count, channels, out);
    out += count * channels;
    left -= count;
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> SoundSampleRate(absl::Span<const uint8_t> file) {
  size_t begin = 0;
  const SoundFormat format = FindSoundFormat(file, &begin);
  SoundDecoder decoder;
  absl::StatusOr<SoundShape> shape;
  if (format == SoundFormat::kWav) {
    shape = decoder.Start(file);
  } else {
    auto head = ReadHead(format, file, begin);
    if (!head.ok()) return head.status();
    if (head->sample_rate > 0) return head->sample_rate;
    shape = decoder.StartBehind(format, *std::move(head), file);
  }
  if (!shape.ok()) return shape.status();
  return shape->sample_rate;
}

}  // namespace penstock
