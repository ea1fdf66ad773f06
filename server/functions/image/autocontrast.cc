#include "server/expr/arguments.h"
#include "server/image/tone.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double cutoff = 0;
  if (const absl::Status status = FirstError({CheckImage(arguments[0], {DType::kUint8}),
                                              ReadConstant(arguments[1], "cutoff", &cutoff)});
      !status.ok()) {
    return status;
  }
  if (cutoff < 0 || cutoff > 100) return WrongArgument("cutoff", "a constant of 0 to 100");
  return BindRows(arguments[0].type,
                  [cutoff](const ImageView& image, Arena&) -> absl::StatusOr<NextRows> {
                    if (absl::Status status = CheckHistograms(image); !status.ok()) return status;
                    return StartAutocontrast(cutoff, cutoff, image);
                  });
}

const RowFunctionRegistration kRegistration({
    .name = "autocontrast",
    .signature = "autocontrast(image, cutoff=0)",
    .doc = "An image whose darkest values become 0 and whose lightest 255, each channel by itself, "
           "as Pillow's ImageOps.autocontrast does it.\n"
           "\n"
           "image: uint8 of shape (height, width, channels); the result has its type.\n"
           "cutoff: how many percent of the darkest and of the lightest values are left out of "
           "account, a constant of 0 to 100.\n"
           "\n"
           "Pillow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
