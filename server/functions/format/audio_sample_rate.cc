#include <cstring>
#include <memory>

#include "server/codec/sound.h"
#include "server/expr/arguments.h"
#include "server/expr/scalar_type.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class AudioSampleRate final : public RowKernel {
 public:
  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const auto rate = SoundSampleRate({arguments[0].data, arguments[0].bytes});
    if (!rate.ok()) return rate.status();
    std::memcpy(out.Reserve(sizeof(int32_t)), &*rate, sizeof(int32_t));
    out.Commit();
    return absl::OkStatus();
  }
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = CheckContents(arguments[0]); !status.ok()) return status;
  // The rate of Opus is the decoder's.
  if (const auto library = sndfile::Load(); !library.ok()) return library.status();
  BoundRowFunction bound;
  bound.type = ScalarType(DType::kInt32);
  bound.kernel = std::make_shared<AudioSampleRate>();
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "audio_sample_rate",
    .signature = "audio_sample_rate(contents)",
    .doc = "How many samples a second a WAV, FLAC, OGG or MP3 file has: int32.\n"
           "\n"
           "contents: a string scalar, the bytes of the file; what decode_audio does not read is "
           "an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
