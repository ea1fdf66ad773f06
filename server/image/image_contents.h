// What the functions that decode whole images share.
//
// Threads: safe from any thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {

// InvalidArgument unless it is a string scalar that is no constant: the bytes of a file.
inline absl::Status CheckContents(const Argument& contents) {
  if (contents.type.dtype == DType::kString && contents.type.shape.empty() && !contents.literal)
    return absl::OkStatus();
  return WrongArgument("contents",
                       absl::StrCat("a string scalar, found ", TypeToString(contents.type)));
}

// The pixels of the image, as (height, width, channels). A Decoder has Start(), which reads the header, and Decode().
template <typename Decoder, typename Options>
absl::Status DecodeContents(const RowValue& contents, const Options& options, RowOutput& out) {
  Decoder decoder;
  const auto shape = decoder.Start(contents.data, contents.bytes, options);
  if (!shape.ok()) return shape.status();
  out.SetShape({shape->height, shape->width, shape->channels});
  uint8_t* const pixels = out.Reserve(shape->bytes());
  if (const absl::Status status = decoder.Decode(pixels); !status.ok()) return status;
  out.Commit();
  return absl::OkStatus();
}

}  // namespace penstock::expr
