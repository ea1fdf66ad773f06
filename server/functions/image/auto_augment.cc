#include <array>
#include <string>

#include "server/expr/arguments.h"
#include "server/image/augment.h"

namespace penstock::expr {
namespace {

using enum AugmentOp;

// How often an operation is done, and how strong it is, of ten steps.
struct PolicyStep {
  AugmentOp op;
  double probability;
  int64_t bin;
};
// One of these pairs is drawn for each image.
using Policy = std::array<std::array<PolicyStep, 2>, 25>;

// What the paper's search found for each set of images.
constexpr Policy kImageNet = {{
    {{{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}},  {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}}},
    {{{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}}}, {{{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}}},
    {{{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}}, {{{kEqualize, 0.4, 0}, {kRotate, 0.8, 8}}},
    {{{kSolarize, 0.6, 3}, {kEqualize, 0.6, 0}}}, {{{kPosterize, 0.8, 5}, {kEqualize, 1, 0}}},
    {{{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}}},   {{{kEqualize, 0.6, 0}, {kPosterize, 0.4, 6}}},
    {{{kRotate, 0.8, 8}, {kColor, 0.4, 0}}},      {{{kRotate, 0.4, 9}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0, 0}, {kEqualize, 0.8, 0}}},   {{{kInvert, 0.6, 0}, {kEqualize, 1, 0}}},
    {{{kColor, 0.6, 4}, {kContrast, 1, 8}}},      {{{kRotate, 0.8, 8}, {kColor, 1, 2}}},
    {{{kColor, 0.8, 8}, {kSolarize, 0.8, 7}}},    {{{kSharpness, 0.4, 7}, {kInvert, 0.6, 0}}},
    {{{kShearX, 0.6, 5}, {kEqualize, 1, 0}}},     {{{kColor, 0.4, 0}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.4, 0}, {kSolarize, 0.2, 4}}}, {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6, 0}}},
    {{{kInvert, 0.6, 0}, {kEqualize, 1, 0}}},     {{{kColor, 0.6, 4}, {kContrast, 1, 8}}},
    {{{kEqualize, 0.8, 0}, {kEqualize, 0.6, 0}}},
}};

constexpr Policy kCifar10 = {{
    {{{kInvert, 0.1, 0}, {kContrast, 0.2, 6}}},
    {{{kRotate, 0.7, 2}, {kTranslateX, 0.3, 9}}},
    {{{kSharpness, 0.8, 1}, {kSharpness, 0.9, 3}}},
    {{{kShearY, 0.5, 8}, {kTranslateY, 0.7, 9}}},
    {{{kAutoContrast, 0.5, 0}, {kEqualize, 0.9, 0}}},
    {{{kShearY, 0.2, 7}, {kPosterize, 0.3, 7}}},
    {{{kColor, 0.4, 3}, {kBrightness, 0.6, 7}}},
    {{{kSharpness, 0.3, 9}, {kBrightness, 0.7, 9}}},
    {{{kEqualize, 0.6, 0}, {kEqualize, 0.5, 0}}},
    {{{kContrast, 0.6, 7}, {kSharpness, 0.6, 5}}},
    {{{kColor, 0.7, 7}, {kTranslateX, 0.5, 8}}},
    {{{kEqualize, 0.3, 0}, {kAutoContrast, 0.4, 0}}},
    {{{kTranslateY, 0.4, 3}, {kSharpness, 0.2, 6}}},
    {{{kBrightness, 0.9, 6}, {kColor, 0.2, 8}}},
    {{{kSolarize, 0.5, 2}, {kInvert, 0, 0}}},
    {{{kEqualize, 0.2, 0}, {kAutoContrast, 0.6, 0}}},
    {{{kEqualize, 0.2, 0}, {kEqualize, 0.6, 0}}},
    {{{kColor, 0.9, 9}, {kEqualize, 0.6, 0}}},
    {{{kAutoContrast, 0.8, 0}, {kSolarize, 0.2, 8}}},
    {{{kBrightness, 0.1, 3}, {kColor, 0.7, 0}}},
    {{{kSolarize, 0.4, 5}, {kAutoContrast, 0.9, 0}}},
    {{{kTranslateY, 0.9, 9}, {kTranslateY, 0.7, 9}}},
    {{{kAutoContrast, 0.9, 0}, {kSolarize, 0.8, 3}}},
    {{{kEqualize, 0.8, 0}, {kInvert, 0.1, 0}}},
    {{{kTranslateY, 0.7, 9}, {kAutoContrast, 0.9, 0}}},
}};

constexpr Policy kSvhn = {{
    {{{kShearX, 0.9, 4}, {kInvert, 0.2, 0}}},       {{{kShearY, 0.9, 8}, {kInvert, 0.7, 0}}},
    {{{kEqualize, 0.6, 0}, {kSolarize, 0.6, 6}}},   {{{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}}},
    {{{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}}},     {{{kShearX, 0.9, 4}, {kAutoContrast, 0.8, 0}}},
    {{{kShearY, 0.9, 8}, {kInvert, 0.4, 0}}},       {{{kShearY, 0.9, 5}, {kSolarize, 0.2, 6}}},
    {{{kInvert, 0.9, 0}, {kAutoContrast, 0.8, 0}}}, {{{kEqualize, 0.6, 0}, {kRotate, 0.9, 3}}},
    {{{kShearX, 0.9, 4}, {kSolarize, 0.3, 3}}},     {{{kShearY, 0.8, 8}, {kInvert, 0.7, 0}}},
    {{{kEqualize, 0.9, 0}, {kTranslateY, 0.6, 6}}}, {{{kInvert, 0.9, 0}, {kEqualize, 0.6, 0}}},
    {{{kContrast, 0.3, 3}, {kRotate, 0.8, 4}}},     {{{kInvert, 0.8, 0}, {kTranslateY, 0, 2}}},
    {{{kShearY, 0.7, 6}, {kSolarize, 0.4, 8}}},     {{{kInvert, 0.6, 0}, {kRotate, 0.8, 4}}},
    {{{kShearY, 0.3, 7}, {kTranslateX, 0.9, 3}}},   {{{kShearX, 0.1, 6}, {kInvert, 0.6, 0}}},
    {{{kSolarize, 0.7, 2}, {kTranslateY, 0.6, 7}}}, {{{kShearY, 0.8, 4}, {kInvert, 0.8, 0}}},
    {{{kShearX, 0.7, 9}, {kTranslateY, 0.8, 3}}},   {{{kShearY, 0.8, 5}, {kAutoContrast, 0.7, 0}}},
    {{{kShearX, 0.7, 2}, {kInvert, 0.1, 0}}},
}};

const Policy* FindPolicy(std::string_view name) {
  if (name == "imagenet") return &kImageNet;
  if (name == "cifar10") return &kCifar10;
  return name == "svhn" ? &kSvhn : nullptr;
}

std::vector<AugmentStep> DrawSteps(const Policy& policy, Draws& draws, int64_t height,
                                   int64_t width) {
  constexpr int64_t kBins = 10;
  std::vector<AugmentStep> steps;
  for (const PolicyStep& step : policy[draws.Below(policy.size())]) {
    const bool done = draws.Unit() < step.probability;
    const bool negative = draws.Below(2) == 1 && HasSign(step.op);
    if (!done) continue;
    const double size = MagnitudeOf(step.op, AugmentSpace(), step.bin, kBins, height, width);
    steps.push_back({step.op, negative ? -size : size});
  }
  return steps;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::string name = "imagenet";
  if (const absl::Status status = ReadConstant(arguments[1], "policy", &name); !status.ok())
    return status;
  const Policy* const policy = FindPolicy(name);
  if (policy == nullptr) {
    return WrongArgument("policy", "\"imagenet\", \"cifar10\" or \"svhn\", a constant");
  }
  return BindAugment(arguments[0], arguments[2], arguments[3], arguments[4],
                     [policy](Draws& draws, int64_t height, int64_t width) {
                       return DrawSteps(*policy, draws, height, width);
                     });
}

const RowFunctionRegistration kRegistration({
    .name = "auto_augment",
    .signature = "auto_augment(image, policy=\"imagenet\", method=\"nearest\", fill=0, seed=None)",
    .doc =
        "Two operations of a learned policy: AutoAugment (arXiv 1805.09501) as torchvision does "
        "it to Pillow's images.\n"
        "\n"
        "image: uint8 of shape (height, width, channels), of one or three channels; the result "
        "has its type.\n"
        "policy: which of three it is, \"imagenet\", \"cifar10\" or \"svhn\", a constant.\n"
        "method: \"nearest\", \"bilinear\" or \"bicubic\", a constant.\n"
        "fill: what stands where nothing of the image is, in all channels, a constant of the "
        "image's dtype.\n"
        "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
        "if it is left out.\n"
        "\n"
        "A policy has 25 pairs of operations, of which one is drawn; each of its two is done with "
        "a probability of its own. Each\n"
        "gives torchvision's bytes.\n"
        "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
        "record, on nothing else.\n"
        "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
