// Looks for bytes that the readers of .npy headers and ZIP archives read beyond, or believe and
// should not: fault 20a.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "io/array/npy_header.h"
#include "io/array/zip_directory.h"
#include "tests/support/memory_file.h"

namespace {

// An array's header; its figures agree with each other.
void ReadHeader(absl::Span<const uint8_t> beginning) {
  const auto header = penstock::ParseNpyHeader(beginning);
  if (!header.ok()) return;
  if (header->data_offset > beginning.size()) std::abort();
  const auto elements = penstock::NumElements(header->type.shape);
  if (!elements || (*elements > 0 && header->element_bytes == 0)) std::abort();
  if (static_cast<uint64_t>(*elements) * header->element_bytes != header->data_bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  constexpr uint64_t kPlainBytesMax = uint64_t{1} << 20;
  ReadHeader(absl::MakeConstSpan(data, size));
  test::MemoryFile file(std::string(reinterpret_cast<const char*>(data), size));
  const auto members = ReadZipDirectory(file);
  if (!members.ok()) return 0;
  for (const ZipMember& member : *members) {
    // Its bytes lie in the file.
    if (member.data_offset > size || member.data_bytes > size - member.data_offset) std::abort();
    if (!member.deflated) {
      if (member.plain_bytes != member.data_bytes) std::abort();
      ReadHeader(absl::MakeConstSpan(data + member.data_offset, member.data_bytes));
      continue;
    }
    std::vector<uint8_t> plain(std::min(member.plain_bytes, kPlainBytesMax));
    const auto begun = InflateBeginning(file, member, absl::MakeSpan(plain));
    if (begun.ok()) ReadHeader(absl::MakeConstSpan(plain).first(*begun));
    if (plain.size() == member.plain_bytes &&
        InflateWhole(file, member, absl::MakeSpan(plain)).ok() &&
        ExtendCrc32(0, plain) != member.crc32) {
      std::abort();
    }
  }
  return 0;
}
