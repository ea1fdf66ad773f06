// What goes between a daemon and its helper: frames, in both directions on one connection.
//
//     0  magic "PSH1"   u32     8  step         u64     24  data_bytes  u64      40  meta, then data
//     4  kind           u32    16  meta_bytes   u32     32  data_crc    u32
//                              20  meta_crc     u32     36  crc of the bytes in front of it
//
// All numbers are little-endian; checksums are CRC-32C. Meta is a message of helpers.proto. By TLS
// data has no checksum of ours, and data_crc is 0.
//
// Threads:  functions without state.
// Limits:   kMaxMetaBytes.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {

enum class FrameKind : uint32_t {
  kHello = 1,    // asker: HelperHello
  kReady = 2,    // helper: it may be asked
  kRefused = 3,  // helper: HelperRefusal, the last frame
  kWant = 4,     // asker: the step is to be made; they are asked for in order
  kPassed = 5,   // asker: no step below this one will be asked for any more; also a sign of life
  kStep = 6,     // helper: HelperStep, and the bytes; in the order of the questions
  kUnmade = 7,   // helper: the same for a step that it has not made: it fails, or there is none
  kAlive = 8,    // helper: a sign of life
};

inline constexpr size_t kFrameBytes = 40;
// A spec with large constants.
inline constexpr uint32_t kMaxMetaBytes = uint32_t{64} << 20;

struct Frame {
  FrameKind kind = FrameKind::kAlive;
  uint64_t step = 0;
  uint32_t meta_bytes = 0;
  uint32_t meta_crc = 0;
  uint64_t data_bytes = 0;
  uint32_t data_crc = 0;
};

std::array<uint8_t, kFrameBytes> EncodeFrame(const Frame& frame);
// DataLoss for bytes that are none, or that were changed on their way.
absl::StatusOr<Frame> DecodeFrame(const std::array<uint8_t, kFrameBytes>& bytes);

}  // namespace penstock
