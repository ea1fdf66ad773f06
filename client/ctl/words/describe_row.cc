// One row of a batch in words: where it comes from, what was drawn, what its features are.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {
namespace {

// As many values of a tensor, and bytes of a string, are printed.
constexpr size_t kShownValues = 8;
constexpr size_t kShownBytes = 60;

template <typename T>
std::string Numbers(const std::string& bytes) {
  const size_t count = bytes.size() / sizeof(T);
  std::string text;
  double least = std::numeric_limits<double>::infinity(), greatest = -least, sum = 0;
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    const auto number = static_cast<double>(value);
    least = std::min(least, number);
    greatest = std::max(greatest, number);
    sum += number;
    if (i >= kShownValues) continue;
    if constexpr (std::is_integral_v<T>) {
      absl::StrAppend(&text, " ", +value);
    } else {
      absl::StrAppendFormat(&text, " %.7g", number);
    }
  }
  if (count <= kShownValues) return text;
  return absl::StrFormat("%s ...  least %g, greatest %g, mean %g", text, least, greatest,
                         sum / static_cast<double>(count));
}

std::string Values(const v1::ShownFeature& feature) {
  const std::string& bytes = feature.values();
  switch (feature.dtype()) {
    case v1::DATA_TYPE_BOOL:
    case v1::DATA_TYPE_UINT8:
      return Numbers<uint8_t>(bytes);
    case v1::DATA_TYPE_INT8:
      return Numbers<int8_t>(bytes);
    case v1::DATA_TYPE_INT16:
      return Numbers<int16_t>(bytes);
    case v1::DATA_TYPE_UINT16:
      return Numbers<uint16_t>(bytes);
    case v1::DATA_TYPE_INT32:
      return Numbers<int32_t>(bytes);
    case v1::DATA_TYPE_UINT32:
      return Numbers<uint32_t>(bytes);
    case v1::DATA_TYPE_INT64:
      return Numbers<int64_t>(bytes);
    case v1::DATA_TYPE_UINT64:
      return Numbers<uint64_t>(bytes);
    case v1::DATA_TYPE_FLOAT32:
      return Numbers<float>(bytes);
    case v1::DATA_TYPE_FLOAT64:
      return Numbers<double>(bytes);
    case v1::DATA_TYPE_STRING:
      if (feature.shape_size() == 0) {
        return absl::StrCat(
            " \"", absl::CHexEscape(bytes.substr(0, kShownBytes)), "\"",
            bytes.size() > kShownBytes ? absl::StrCat(" ... ", bytes.size(), " bytes") : "");
      }
      break;
    default:
      break;
  }
  return absl::StrCat(" ", bytes.size(), " bytes");
}

}  // namespace

std::string DescribePlace(const v1::RecordPlace& place) {
  std::string text = place.file();
  if (place.has_record()) absl::StrAppend(&text, ", record ", place.record());
  absl::StrAppend(&text, ", offset ", place.offset(), " (epoch ", place.epoch(), ")");
  return text;
}

std::string DescribeRow(const v1::ShowRowResponse& row) {
  std::string text;
  for (const v1::RecordPlace& place : row.records())
    absl::StrAppend(&text, "from ", DescribePlace(place), "\n");
  const std::string* call = nullptr;
  for (const v1::Draw& draw : row.draws()) {
    // The numbers of one call stand in one line.
    const bool same = call != nullptr && *call == draw.call();
    absl::StrAppend(&text, same ? ", " : call == nullptr ? "" : "\n");
    if (!same) absl::StrAppend(&text, "drew ", draw.call(), "  ");
    absl::StrAppendFormat(&text, "%s %.9g", draw.name(), draw.value());
    call = &draw.call();
  }
  if (call != nullptr) text += "\n";
  for (const v1::ShownFeature& feature : row.features()) {
    absl::StrAppend(&text, feature.name(), " ", DataTypeName(feature.dtype()), " ",
                    ShapeName(feature.shape()), " ", Values(feature), "\n");
  }
  return text;
}

}  // namespace penstock::ctl
