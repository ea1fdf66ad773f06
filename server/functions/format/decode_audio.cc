#include <memory>

#include "absl/strings/str_cat.h"
#include "server/codec/sound.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodeAudio final : public RowKernel {
 public:
  // -1: as many as the file has.
  DecodeAudio(int64_t channels, int64_t samples) : channels_(channels), samples_(samples) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    SoundDecoder decoder;
    const auto shape = decoder.Start({arguments[0].data, arguments[0].bytes});
    if (!shape.ok()) return shape.status();
    const int64_t samples = samples_ >= 0 ? samples_ : shape->samples;
    const int64_t channels = channels_ >= 0 ? channels_ : shape->channels;
    if (absl::Status status = CheckElements(samples, 1, channels); !status.ok()) return status;
    if (samples_ < 0 || channels_ < 0) out.SetShape({samples, channels});
    const auto bytes = static_cast<size_t>(samples * channels) * sizeof(float);
    auto* const values = reinterpret_cast<float*>(out.Reserve(bytes));
    if (absl::Status status = decoder.Decode(samples, channels, values); !status.ok())
      return status;
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const int64_t channels_;
  const int64_t samples_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t channels = -1, samples = -1;
  if (const absl::Status status = FirstError(
          {CheckContents(arguments[0]),
           ReadConstant(arguments[1], "desired_channels", -1, kSoundChannelsMax, &channels),
           ReadConstant(arguments[2], "desired_samples", -1, kSoundValuesMax, &samples)});
      !status.ok()) {
    return status;
  }
  if (channels == 0) {
    return WrongArgument("desired_channels",
                         absl::StrCat("a constant of 1 to ", kSoundChannelsMax, ", or -1"));
  }
  if (samples == 0) return WrongArgument("desired_samples", "a constant of at least 1, or -1");
  // Before anything runs, not at the first file that needs it.
  if (const auto library = sndfile::Load(); !library.ok()) return library.status();
  BoundRowFunction bound;
  bound.type = {DType::kFloat32,
                {samples > 0 ? samples : kUnknownSize, channels > 0 ? channels : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeAudio>(channels, samples);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_audio",
    .signature = "decode_audio(contents, desired_channels=-1, desired_samples=-1)",
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
