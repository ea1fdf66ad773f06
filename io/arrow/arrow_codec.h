// Compressed buffers of record batches: eight bytes that say how many there were, -1 for a buffer
// that was left as it is, and a frame.
//
// Threads:  any; no state but a decompressor for each thread.
// Limits:   plain bytes of kMaxArrowBufferBytes a buffer.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/memory_block.h"
#include "io/arrow/arrow_file.h"

namespace penstock {

inline constexpr uint64_t kMaxArrowBufferBytes = uint64_t{1} << 30;

// A buffer that is held in memory.
struct ArrowMemory {
  MemoryBlock block;
  uint64_t bytes = 0;
};

// So many bytes, which are not set, with 64 zeros behind them.
ArrowMemory AllocateArrowMemory(uint64_t bytes);

// The plain bytes, in memory with 64 bytes behind them that may be read. DataLoss for what is no
// such buffer, without its address. REQUIRES: `codec` is not kNone.
absl::StatusOr<ArrowMemory> UnpackArrowBuffer(ArrowCodec codec, absl::Span<const uint8_t> packed);

}  // namespace penstock
