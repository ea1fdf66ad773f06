// What the functions that decode whole images share.
//
// Threads: safe from any thread.
#pragma once

#include <cstddef>
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

// Reads the constant `channels` of a format whose images have three channels or four: 3, 4, or 0
// for as many as the image has.
inline absl::Status ReadColorChannels(const Argument& argument, int* channels) {
  int64_t read = 0;
  if (absl::Status status = ReadConstant(argument, "channels", 0, 4, &read); !status.ok())
    return status;
  if (read == 1 || read == 2) return WrongArgument("channels", "0, 3 or 4 as a constant");
  *channels = static_cast<int>(read);
  return absl::OkStatus();
}

// The pixels of a started decoder, `bytes` of them.
template <typename Decoder>
absl::Status DecodeInto(Decoder& decoder, size_t bytes, RowOutput& out) {
  uint8_t* const pixels = out.Reserve(bytes);
  if (const absl::Status status = decoder.Decode(pixels); !status.ok()) return status;
  out.Commit();
  return absl::OkStatus();
}

// The pixels of the image, as (height, width, channels). A Decoder has Start(), which reads the
// header, and Decode().
template <typename Decoder, typename Options>
absl::Status DecodeContents(const RowValue& contents, const Options& options, RowOutput& out) {
  Decoder decoder;
  const auto shape = decoder.Start(contents.data, contents.bytes, options);
  if (!shape.ok()) return shape.status();
  if (absl::Status status = CheckElements(shape->height, shape->width, shape->channels);
      !status.ok())
    return status;
  out.SetShape({shape->height, shape->width, shape->channels});
  return DecodeInto(decoder, shape->bytes(), out);
}

// The pixels of all frames of the image, as (frames, height, width, channels).
template <typename Decoder, typename Options>
absl::Status DecodeFrames(const RowValue& contents, const Options& options, RowOutput& out) {
  Decoder decoder;
  const auto shape = decoder.Start(contents.data, contents.bytes, options);
  if (!shape.ok()) return shape.status();
  out.SetShape({shape->frames, shape->height, shape->width, shape->channels});
  return DecodeInto(decoder, shape->bytes(), out);
}

}  // namespace penstock::expr
