#include "client/ctl/describe.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace penstock::ctl {

std::string DataTypeName(int dtype) {
  const std::string& name = v1::DataType_Name(static_cast<v1::DataType>(dtype));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "DATA_TYPE_"));
}

std::string StateName(v1::PipelineState state) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::PipelineState_Name(state), "PIPELINE_STATE_"));
}

std::string ByteCount(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " bytes")
                   : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string DescribeElement(const v1::Pipeline& pipeline) {
  int width = 0;
  for (const v1::TensorSignature& tensor : pipeline.element()) {
    width = std::max(width, static_cast<int>(tensor.name().size()));
  }
  std::string text;
  for (const v1::TensorSignature& tensor : pipeline.element()) {
    absl::StrAppend(&text,
                    absl::StrFormat("%-*s  %-8s  %s\n", width, tensor.name(),
                                    DataTypeName(tensor.dtype()), ShapeName(tensor.shape())));
  }
  return text;
}

}  // namespace penstock::ctl
