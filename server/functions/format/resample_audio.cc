#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/resample.h"
#include "server/codec/sound_limits.h"
#include "server/expr/arguments.h"
#include "server/expr/data_integers.h"

namespace penstock::expr {
namespace {

class ResampleAudio final : public RowKernel {
 public:
  ResampleAudio(DataIntegers rate_in, std::shared_ptr<const ResampleFilters> filters,
                bool sets_shape)
      : rate_in_(std::move(rate_in)), filters_(std::move(filters)), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    IntegersRead rate;
    if (absl::Status status = rate_in_.Read(arguments.subspan(1), &rate); !status.ok())
      return status;
    const auto filter = filters_->From(rate[0]);
    if (!filter.ok()) {
      return absl::DataLossError(absl::StrCat("resample_audio: ", filter.status().message()));
    }
    Shape shape = arguments[0].shape;
    const int64_t samples_in = shape[0];
    const int64_t channels = shape.size() > 1 ? shape[1] : 1;
    const int64_t samples = (*filter)->SamplesOut(samples_in);
    shape[0] = samples;
    if (const auto elements = CountElements(shape); !elements.ok()) return elements.status();
    if (sets_shape_) out.SetShape(shape);
    auto* const to = reinterpret_cast<float*>(
        out.Reserve(static_cast<size_t>(samples * channels) * sizeof(float)));
    (*filter)->Run(reinterpret_cast<const float*>(arguments[0].data), samples_in, channels, samples,
                   to);
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const DataIntegers rate_in_;
  const std::shared_ptr<const ResampleFilters> filters_;
  const bool sets_shape_;
};

absl::Status ReadOptions(absl::Span<const Argument> arguments, ResampleOptions* options) {
  std::string method = "sinc_interp_hann";
  if (const absl::Status status =
          FirstError({ReadConstant(arguments[3], "lowpass_filter_width", 1, kResampleZerosMax,
                                   &options->zeros),
                      ReadConstant(arguments[4], "rolloff", &options->rolloff),
                      ReadConstant(arguments[5], "resampling_method", &method),
                      ReadConstant(arguments[6], "beta", &options->beta)});
      !status.ok()) {
    return status;
  }
  if (options->rolloff < 0.01 || options->rolloff > 1)
    return WrongArgument("rolloff", "a constant of 0.01 to 1");
  if (options->beta < 0 || options->beta > kResampleBetaMax)
    return WrongArgument("beta", absl::StrCat("a constant of 0 to ", kResampleBetaMax));
  options->is_kaiser = method == "sinc_interp_kaiser";
  if (!options->is_kaiser && method != "sinc_interp_hann")
    return WrongArgument("resampling_method", "\"sinc_interp_hann\" or \"sinc_interp_kaiser\"");
  return absl::OkStatus();
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& sound = arguments[0].type;
  if (sound.dtype != DType::kFloat32 || sound.shape.empty() || sound.shape.size() > 2) {
    return WrongArgument("samples",
                         absl::StrCat("float32 of shape (samples,) or (samples, channels), found ",
                                      TypeToString(sound)));
  }
  DataIntegers rate_in;
  int64_t rate_out = 0;
  ResampleOptions options;
  if (const absl::Status status =
          FirstError({rate_in.Add(arguments, 1, "rate_in", 1, kSampleRateMax),
                      ReadConstant(arguments[2], "rate_out", 1, kSampleRateMax, &rate_out),
                      ReadOptions(arguments, &options)});
      !status.ok()) {
    return status;
  }
  const auto filters = std::make_shared<const ResampleFilters>(rate_out, options);
  BoundRowFunction bound;
  bound.type = sound;
  bound.tensor_arguments = {0};
  if (rate_in.all_constant()) {
    const auto filter = filters->From(*rate_in.constant(0));
    if (!filter.ok())
      return absl::InvalidArgumentError(absl::StrCat("rate_in: ", filter.status().message()));
    if (sound.shape[0] != kUnknownSize) bound.type.shape[0] = (*filter)->SamplesOut(sound.shape[0]);
  } else {
    bound.tensor_arguments.push_back(1);
    bound.type.shape[0] = kUnknownSize;
  }
  if (bound.type.shape[0] != kUnknownSize && !FitsRow(bound.type.shape)) {
    return WrongArgument("rate_out", absl::StrCat("fewer samples than ", TypeToString(bound.type)));
  }
  bound.kernel = std::make_shared<ResampleAudio>(std::move(rate_in), filters,
                                                 HasUnknownSize(bound.type.shape));
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "resample_audio",
    .signature = "resample_audio(samples, rate_in, rate_out, lowpass_filter_width=6, rolloff=0.99, "
                 "resampling_method=\"sinc_interp_hann\", beta=14.769656459379492)",
    .doc =
        "A sound at another sampling rate, as torchaudio.functional.resample gives it: float32, "
        "each channel by itself, ceil(samples * rate_out / rate_in) samples. Band-limited "
        "interpolation by a windowed sinc; in front of and behind the sound there are zeros.\n"
        "\n"
        "samples: float32 of shape (samples,) or (samples, channels).\n"
        "rate_in: samples a second of the sound: a constant, or an integer of the data.\n"
        "rate_out: samples a second of the result, a constant. Equal rates leave the sound as it "
        "is.\n"
        "lowpass_filter_width: zeros of the sinc on each side, a constant of 1 to 1024. More of "
        "them make a sharper filter, and take as much more time.\n"
        "rolloff: where the filter's band ends, in parts of the lower rate's half: a constant of "
        "0.01 to 1.\n"
        "resampling_method: the window: \"sinc_interp_hann\" or \"sinc_interp_kaiser\".\n"
        "beta: of Kaiser's window, a constant of 0 to 100.\n"
        "\n"
        "torchaudio computes its filter in the sound's own dtype: of float64 its values are these "
        "to 1e-6 of the loudest one, of float32 to 1e-4. lowpass_filter_width=64, "
        "rolloff=0.9475937167399596 and Kaiser's window keep more of the highest tones.\n"
        "Two rates that need more than 4,194,304 coefficients are refused: such as primes above "
        "300,000.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
