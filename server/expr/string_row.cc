#include "server/expr/string_row.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/each_string.h"

namespace penstock::expr {
namespace {

// Of a string beside its bytes, as StopLook counts it.
constexpr uint64_t kStringWork = 16;

}  // namespace

absl::Span<const absl::string_view> StringsOf(const RowValue& row, Arena& scratch) {
  const auto* const data = reinterpret_cast<const char*>(row.data);
  const auto count = static_cast<size_t>(*NumElements(row.shape));
  auto* const strings = scratch.AllocateArray<absl::string_view>(count);
  if (row.shape.empty()) {
    strings[0] = absl::string_view(data, row.bytes);
    return {strings, count};
  }
  const char* text = data + count * sizeof(uint32_t);
  InPieces(count, [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) {
      uint32_t bytes;
      std::memcpy(&bytes, data + i * sizeof(bytes), sizeof(bytes));
      strings[i] = absl::string_view(text, bytes);
      text += bytes;
    }
  });
  return {strings, count};
}

absl::Status PutStrings(absl::Span<const absl::string_view> strings, bool is_scalar,
                        RowOutput& out) {
  uint64_t bytes = is_scalar ? 0 : strings.size() * sizeof(uint32_t);
  InPieces(strings.size(), [&](size_t first, size_t some) {
    for (const absl::string_view string : strings.subspan(first, some)) bytes += string.size();
  });
  if (bytes > kEachStringBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("results larger than the limit: ", bytes,
                                                     " > ", kEachStringBytesMax, " bytes of ",
                                                     strings.size(), " strings"));
  }
  uint8_t* to = out.Reserve(bytes);
  InPieces(is_scalar ? 0 : strings.size(), [&](size_t first, size_t some) {
    for (const absl::string_view string : strings.subspan(first, some)) {
      const auto size = static_cast<uint32_t>(string.size());
      std::memcpy(to, &size, sizeof(size));
      to += sizeof(size);
    }
  });
  StopLook look;
  for (const absl::string_view string : strings) {
    look.Did(string.size() + kStringWork);
    CopyInPieces(to, string.data(), string.size());
    to += string.size();
  }
  out.Commit();
  return absl::OkStatus();
}

}  // namespace penstock::expr
