#include "client/ctl/batches/batch_line.h"

#include <cstdint>

#include "absl/strings/str_format.h"
#include "client/ctl/batches/crc32c.h"
#include "client/ctl/batches/npz.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {

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
