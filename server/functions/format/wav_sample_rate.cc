#include <cstring>
#include <memory>

#include "server/codec/wav.h"
#include "server/expr/arguments.h"
#include "server/expr/scalar_type.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class WavSampleRate final : public RowKernel {
 public:
  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    WavDecoder decoder;
    const auto shape = decoder.Start(arguments[0].data, arguments[0].bytes);
    if (!shape.ok()) return shape.status();
    std::memcpy(out.Reserve(sizeof(int32_t)), &shape->sample_rate, sizeof(int32_t));
    out.Commit();
    return absl::OkStatus();
  }
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = CheckContents(arguments[0]); !status.ok()) return status;
  BoundRowFunction bound;
  bound.type = ScalarType(DType::kInt32);
  bound.kernel = std::make_shared<WavSampleRate>();
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "wav_sample_rate",
    .signature = "wav_sample_rate(contents)",
    .doc = "How many samples a WAV file has a second: int32, the second result of "
           "tf.audio.decode_wav.\n"
           "\n"
           "contents: a string scalar, the bytes of the file; what is no WAV file that decode_wav "
           "reads is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
