#include <memory>

#include "absl/strings/str_cat.h"
#include "server/codec/sound_limits.h"
#include "server/codec/wav.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodeWav final : public RowKernel {
 public:
  // -1: as many as the file has.
  DecodeWav(int64_t channels, int64_t samples) : channels_(channels), samples_(samples) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    WavDecoder decoder;
    const auto shape = decoder.Start(arguments[0].data, arguments[0].bytes);
    if (!shape.ok()) return shape.status();
    const int64_t samples = samples_ >= 0 ? samples_ : shape->samples;
    const int64_t channels = channels_ >= 0 ? channels_ : shape->channels;
    if (absl::Status status = CheckElements(samples, 1, channels); !status.ok()) return status;
    if (samples_ < 0 || channels_ < 0) out.SetShape({samples, channels});
    const auto bytes = static_cast<size_t>(samples * channels) * sizeof(float);
    decoder.Decode(samples, channels, reinterpret_cast<float*>(out.Reserve(bytes)));
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
  BoundRowFunction bound;
  bound.type = {DType::kFloat32,
                {samples > 0 ? samples : kUnknownSize, channels > 0 ? channels : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeWav>(channels, samples);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_wav",
    .signature = "decode_wav(contents, desired_channels=-1, desired_samples=-1)",
    .doc =
        "The sound of a WAV file as float32 of shape (samples, channels), values of -1 to 1, as "
        "tf.audio.decode_wav gives it.\n"
        "\n"
        "contents: a string scalar, the bytes of the file.\n"
        "desired_channels: a constant; those that the file has beyond them are left out, those "
        "that it lacks are its last one again; -1: as many as it has.\n"
        "desired_samples: a constant; longer sounds are cut, shorter ones filled up with zeros; "
        "-1: as many as it has.\n"
        "\n"
        "TensorFlow's values of PCM of 16 bits, the only encoding that it reads; PCM of 8, 24 and "
        "32 bits and floats give libsndfile's.\n"
        "A file that ends too early or has another encoding is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
