#include "server/cuda/expansions.h"

#include <algorithm>
#include <string>

namespace penstock {
namespace {

using ring::Code;
using ring::Status;
using ring::TensorDType;

std::optional<TensorDType> ResultType(const std::string& name) {
  if (name == "float16") return TensorDType::kFloat16;
  if (name == "bfloat16") return TensorDType::kBfloat16;
  if (name == "float32") return TensorDType::kFloat32;
  if (name == "float64") return TensorDType::kFloat64;
  if (name == "uint8") return TensorDType::kUint8;
  return std::nullopt;
}

Status Read(const v1::DeviceExpansion& from, cuda::Expansion* to) {
  const int count = from.has_normalize() + from.has_one_hot() + from.has_unpack_bits();
  if (count != 1) {
    return {Code::kInvalidArgument,
            "expected one of normalize, one_hot and unpack_bits, found " + std::to_string(count)};
  }
  const std::optional<TensorDType> dtype = ResultType(from.dtype());
  if (!dtype) {
    return {Code::kInvalidArgument,
            "dtype is one of float16, bfloat16, float32, float64 and uint8, not \"" + from.dtype() +
                "\""};
  }
  to->dtype = *dtype;
  if (from.has_normalize()) {
    const v1::NormalizeOnDevice& normalize = from.normalize();
    to->kind = cuda::Expansion::Kind::kNormalize;
    to->scale.assign(normalize.scale().begin(), normalize.scale().end());
    to->mean.assign(normalize.mean().begin(), normalize.mean().end());
    to->deviation.assign(normalize.deviation().begin(), normalize.deviation().end());
    to->channels_first = normalize.channels_first();
  } else if (from.has_one_hot()) {
    to->kind = cuda::Expansion::Kind::kOneHot;
    to->depth = from.one_hot().depth();
  } else {
    to->kind = cuda::Expansion::Kind::kUnpackBits;
  }
  return {};
}

}  // namespace

Status ReadExpansions(const v1::RingOptions& options, const std::vector<BatchTensor>& tensors,
                      std::vector<std::optional<cuda::Expansion>>* out) {
  out->assign(tensors.size(), std::nullopt);
  for (const v1::DeviceExpansion& expand : options.expand()) {
    const auto wrong = [&expand](const std::string& message) {
      return Status{Code::kInvalidArgument,
                    "ring.expand of feature \"" + expand.feature() + "\": " + message};
    };
    const auto found =
        std::find_if(tensors.begin(), tensors.end(),
                     [&expand](const BatchTensor& one) { return one.name == expand.feature(); });
    if (found == tensors.end()) {
      std::string names;
      for (const BatchTensor& one : tensors) names += (names.empty() ? "" : ", ") + one.name;
      return wrong("there is no such feature; there are: " + names);
    }
    std::optional<cuda::Expansion>& place = (*out)[found - tensors.begin()];
    if (place) return wrong("it is named twice");
    place.emplace();
    Status status = Read(expand, &*place);
    if (status.ok() && !found->fixed()) {
      status = {Code::kInvalidArgument, "it is not of fixed size, and so not on the device"};
    }
    if (status.ok()) {
      status = cuda::Plan(static_cast<TensorDType>(found->type.dtype),
                          {found->type.shape.begin(), found->type.shape.end()}, &*place);
    }
    if (!status.ok()) return wrong(status.message);
  }
  return {};
}

}  // namespace penstock
