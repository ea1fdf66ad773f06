// What the newest batch in a ring holds, for somebody who looks: ranges, histograms, and its
// pictures on one sheet.
//
// Threads:  safe from any thread; one sample of a ring at a time.
// Limits:   kMaxValues values of a tensor, kMaxSheetRows pictures of kCellSide pixels a side.
// Cost:     some milliseconds, in which one slot of the ring is not used again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "penstock/v1/control.pb.h"
#include "ring/writer.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

inline constexpr uint64_t kMaxSampledValues = 1 << 20;
inline constexpr int kSampledBins = 16;
inline constexpr int kMaxSheetRows = 64;
inline constexpr int64_t kSheetCellSide = 96;

// Numbers of a tensor whose memory holds `values` of them.
v1::SampledFeature DescribeValues(DType dtype, const uint8_t* data, uint64_t values);

// How pictures lie in a tensor of (rows, …).
struct PictureLayout {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;
  bool channels_first = false;
};
// Whether a tensor of this shape, without the batch axis, looks like pictures: 8 pixels a side at
// least, and 1 or 3 channels behind or in front of them, or none.
std::optional<PictureLayout> LooksLikePictures(const std::vector<int64_t>& shape);

// A PNG of `rows` pictures side by side, each made smaller to fit its cell. Integers of 8 bits are
// shown as they are; other numbers from the least (black) to the greatest.
absl::StatusOr<std::string> ContactSheet(DType dtype, const PictureLayout& layout,
                                         const uint8_t* data, int rows);

// `with_numbers`: not only the sheet. FailedPrecondition when nothing has been published, or
// another sample is being taken.
absl::StatusOr<v1::SamplePipelineResponse> Sample(ring::Writer& writer,
                                                  const std::vector<BatchTensor>& tensors,
                                                  int sheet_rows, bool with_numbers);

}  // namespace penstock
