#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/resample.h"
#include "server/codec/sound.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodeAudio final : public RowKernel {
 public:
  // -1: as many as the file has. `filters`: null where the sound keeps its rate.
  DecodeAudio(int64_t channels, int64_t samples, std::unique_ptr<const ResampleFilters> filters)
      : channels_(channels), samples_(samples), filters_(std::move(filters)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    SoundDecoder decoder;
    const auto shape = decoder.Start({arguments[0].data, arguments[0].bytes});
    if (!shape.ok()) return shape.status();
    std::shared_ptr<const ResampleFilter> filter;
    if (filters_ != nullptr) {
      auto found = filters_->From(shape->sample_rate);
      if (!found.ok())
        return absl::DataLossError(absl::StrCat("decode_audio: ", found.status().message()));
      filter = *std::move(found);
    }
    const int64_t whole = filter == nullptr ? shape->samples : filter->SamplesOut(shape->samples);
    const int64_t samples = samples_ >= 0 ? samples_ : whole;
    const int64_t channels = channels_ >= 0 ? channels_ : shape->channels;
    if (const auto elements = CountElements({samples, channels}); !elements.ok())
      return elements.status();
    if (samples_ < 0 || channels_ < 0) out.SetShape({samples, channels});
    const auto bytes = static_cast<size_t>(samples * channels) * sizeof(float);
    auto* const values = reinterpret_cast<float*>(out.Reserve(bytes));
    const absl::Status status = filter == nullptr
                                    ? decoder.Decode(samples, channels, values)
                                    : Resample(decoder, *shape, *filter, std::min(samples, whole),
                                               channels, scratch, values);
    if (!status.ok()) return status;
    if (filter != nullptr && samples > whole)
      std::fill_n(values + whole * channels, (samples - whole) * channels, 0.0F);
    out.Commit();
    return absl::OkStatus();
  }

 private:
  // The first `samples` at the other rate.
  static absl::Status Resample(SoundDecoder& decoder, const SoundShape& shape,
                               const ResampleFilter& filter, int64_t samples, int64_t channels,
                               Arena& scratch, float* out) {
    const int64_t needed = std::min(shape.samples, filter.SamplesIn(samples));
    if (absl::Status status = CheckElements(needed, 1, channels); !status.ok()) return status;
    auto* const decoded = scratch.AllocateArray<float>(static_cast<size_t>(needed * channels));
    if (absl::Status status = decoder.Decode(needed, channels, decoded); !status.ok())
      return status;
    filter.Run(decoded, needed, channels, samples, out);
    return absl::OkStatus();
  }

  const int64_t channels_;
  const int64_t samples_;
  const std::unique_ptr<const ResampleFilters> filters_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t channels = -1, samples = -1, rate = -1;
  if (const absl::Status status = FirstError(
          {CheckContents(arguments[0]),
           ReadConstant(arguments[1], "desired_channels", -1, kSoundChannelsMax, &channels),
           ReadConstant(arguments[2], "desired_samples", -1, kSoundValuesMax, &samples),
           ReadConstant(arguments[3], "sample_rate", -1, kSampleRateMax, &rate)});
      !status.ok()) {
    return status;
  }
  if (channels == 0) {
    return WrongArgument("desired_channels",
                         absl::StrCat("a constant of 1 to ", kSoundChannelsMax, ", or -1"));
  }
  if (samples == 0) return WrongArgument("desired_samples", "a constant of at least 1, or -1");
  if (rate == 0) {
    return WrongArgument("sample_rate",
                         absl::StrCat("a constant of 1 to ", kSampleRateMax, ", or -1"));
  }
  // Before anything runs, not at the first file that needs it.
  if (const auto library = sndfile::Load(); !library.ok()) return library.status();
  BoundRowFunction bound;
  bound.type = {DType::kFloat32,
                {samples > 0 ? samples : kUnknownSize, channels > 0 ? channels : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeAudio>(
      channels, samples,
      rate < 0 ? nullptr : std::make_unique<ResampleFilters>(rate, ResampleOptions()));
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_audio",
    .signature = "decode_audio(contents, desired_channels=-1, desired_samples=-1, sample_rate=-1)",
    .doc =
        "The sound of a WAV, FLAC, OGG (Vorbis, Opus) or MP3 file, by its first bytes, as float32 "
        "of shape (samples, channels), values of -1 to 1, as soundfile.read(dtype=\"float32\") "
        "gives it.\n"
        "\n"
        "contents: a string scalar, the bytes of the file.\n"
        "desired_channels: a constant; those that the file has beyond them are left out, those "
        "that it lacks are its last one again; -1: as many as it has.\n"
        "desired_samples: a constant; longer sounds are cut, shorter ones filled up with zeros; "
        "-1: as many as it has. What is cut off is not decoded.\n"
        "sample_rate: a constant; the sound is given at so many samples a second, as "
        "resample_audio gives it, of which desired_samples are counted then; -1: at the file's "
        "rate.\n"
        "\n"
        "WAV is read as decode_wav reads it. The others are libsndfile's affair: the daemon loads "
        "it when a pipeline has this function (Debian's package libsndfile1; MP3 takes version "
        "1.1). Without it the pipeline is refused.\n"
        "Values of MP3 and OGG go beyond 1 where the encoder's rounding takes them. Their last "
        "bits depend on the libraries that libsndfile uses, and may depend on the processor.\n"
        "A file that is cut or damaged is an error of its record: checksums of FLAC's frames and "
        "OGG's pages, lengths and the count of MP3's frames, one stream in an OGG file.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
