#include "server/helpers/frame.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"

namespace penstock {
namespace {

constexpr uint32_t kMagic = 0x31485350;  // "PSH1"
constexpr size_t kCrcOffset = kFrameBytes - sizeof(uint32_t);

template <typename Number>
void Put(size_t offset, Number number, std::array<uint8_t, kFrameBytes>* bytes) {
  std::memcpy(bytes->data() + offset, &number, sizeof(number));
}

template <typename Number>
Number Get(size_t offset, const std::array<uint8_t, kFrameBytes>& bytes) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

}  // namespace

std::array<uint8_t, kFrameBytes> EncodeFrame(const Frame& frame) {
  std::array<uint8_t, kFrameBytes> bytes{};
  Put(0, kMagic, &bytes);
  Put(4, static_cast<uint32_t>(frame.kind), &bytes);
  Put(8, frame.step, &bytes);
  Put(16, frame.meta_bytes, &bytes);
  Put(20, frame.meta_crc, &bytes);
  Put(24, frame.data_bytes, &bytes);
  Put(32, frame.data_crc, &bytes);
  Put(kCrcOffset, Crc32c(bytes.data(), kCrcOffset), &bytes);
  return bytes;
}

absl::StatusOr<Frame> DecodeFrame(const std::array<uint8_t, kFrameBytes>& bytes) {
  if (Get<uint32_t>(0, bytes) != kMagic)
    return absl::DataLossError("what comes is no frame of a daemon's helper");
  if (Get<uint32_t>(kCrcOffset, bytes) != Crc32c(bytes.data(), kCrcOffset))
    return absl::DataLossError("a frame's head was changed on its way (CRC-32C)");
  Frame frame;
  const auto kind = Get<uint32_t>(4, bytes);
  frame.kind = static_cast<FrameKind>(kind);
  frame.step = Get<uint64_t>(8, bytes);
  frame.meta_bytes = Get<uint32_t>(16, bytes);
  frame.meta_crc = Get<uint32_t>(20, bytes);
  frame.data_bytes = Get<uint64_t>(24, bytes);
  frame.data_crc = Get<uint32_t>(32, bytes);
  if (kind < static_cast<uint32_t>(FrameKind::kHello) ||
      kind > static_cast<uint32_t>(FrameKind::kAlive) || frame.meta_bytes > kMaxMetaBytes) {
    return absl::DataLossError(
        absl::StrCat("a frame of kind ", kind, " with ", frame.meta_bytes, " bytes of message"));
  }
  return frame;
}

}  // namespace penstock
