#include "client/ctl/batches/batch_line.h"

#include <isa-l.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/str_format.h"
#include "client/ctl/batches/npz.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {
namespace {

// Goes on with the checksum of TFRecord files before their mask: begin with ~0, and complement the
// result.
uint32_t AddToCrc32c(uint32_t crc, std::span<const std::byte> bytes) {
  // ISA-L takes an int for the size.
  constexpr size_t kMaxChunkBytes = 1 << 30;
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min(bytes.size(), kMaxChunkBytes));
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(chunk.data()));
    crc = crc32_iscsi(data, static_cast<int>(chunk.size()), crc);
    bytes = bytes.subspan(chunk.size());
  }
  return crc;
}

}  // namespace

std::string BatchLine(const Batch& batch) {
  std::string text = absl::StrFormat("step %d  epoch %d", batch.step(), batch.epoch());
  if (batch.valid() < batch.rows()) absl::StrAppendFormat(&text, "  valid %d", batch.valid());
  for (size_t i = 0; i < batch.size(); ++i) {
    const Tensor tensor = batch[i];
    uint32_t crc = ~0u;
    for (const NpzArray& array : NpzArrays(tensor)) crc = AddToCrc32c(crc, array.bytes);
    absl::StrAppendFormat(&text, "  %s %s %s crc32c=%08x", std::string(tensor.name()),
                          DataTypeName(tensor.dtype()), ShapeName(tensor.shape()), ~crc);
  }
  return text;
}

}  // namespace penstock::ctl
