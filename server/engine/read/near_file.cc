#include "server/engine/read/near_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "io/file/damage.h"

namespace penstock {

absl::Span<const uint8_t> NearFile::Near(uint64_t offset, size_t bytes) {
  NearMap* map = table_.MapOf(number_);
  if (map == nullptr) {
    table_.KeepMap(number_, *opened_);
    map = table_.MapOf(number_);
  }
  if (map == nullptr || map->file().torn() || offset >= map->file().size()) return {};
  bytes = std::min<uint64_t>(bytes, map->file().size() - offset);
  const NearMap::Nearness near = map->Look(*opened_, offset, bytes, /*ahead=*/bytes);
  if (!near.range) return {};
  if (!near.ahead) WillNeed(offset + bytes, bytes);
  return {map->file().bytes() + offset, bytes};
}

absl::Status NearFile::CheckNear() const {
  const NearMap* const map = table_.MapOf(number_);
  if (map == nullptr || (!map->file().torn() && SizeNow() >= size())) return absl::OkStatus();
  return FileShrunkError(absl::StrCat("the file became shorter than its ", size(),
                                      " bytes, or cannot be read, while it was mapped (", path(),
                                      ")"));
}

}  // namespace penstock
