#include "server/codec/example_keys.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/codec/example_wire.h"
#include "server/codec/wire.h"

namespace penstock {
namespace {

using example_wire::kFeaturesDepth;

constexpr int kShownKeys = 12;
constexpr size_t kShownKeyBytes = 64;

// Calls visit(begin, end) for each field `tag` of a message, until that is false. Null when it was,
// or what is malformed ended it.
template <typename Visit>
const uint8_t* ForEachField(const uint8_t* p, const uint8_t* end, uint32_t tag, int depth,
                            Visit visit) {
  while (p != nullptr && p < end) {
    uint32_t found;
    if ((p = wire::ReadTag(p, end, &found)) == nullptr) return nullptr;
    if (found != tag) {
      p = wire::SkipField(found, p, end, depth);
      continue;
    }
    size_t size;
    if ((p = wire::ReadSize(p, end, &size)) == nullptr) return nullptr;
    if (!visit(p, p + size)) return nullptr;
    p += size;
  }
  return p;
}

}  // namespace

std::string ListExampleKeys(const uint8_t* data, size_t size) {
  std::string keys;
  int count = 0;
  const auto add = [&](const uint8_t* p, const uint8_t* end) {
    example_wire::Sink ignored;
    std::string_view key;
    if (example_wire::WalkEntry(p, end, ignored, &key) == nullptr) return false;
    if (++count <= kShownKeys)
      absl::StrAppend(&keys, count > 1 ? ", " : "", "\"",
                      absl::CEscape({key.data(), std::min(key.size(), kShownKeyBytes)}),
                      key.size() > kShownKeyBytes ? "…" : "", "\"");
    return true;
  };
  ForEachField(data, data + size, example_wire::kFeaturesTag, example_wire::kExampleDepth,
               [&](const uint8_t* p, const uint8_t* end) {
                 return ForEachField(p, end, example_wire::kEntryTag, kFeaturesDepth, add) !=
                        nullptr;
               });
  if (count == 0) return "no features";
  if (count > kShownKeys) absl::StrAppend(&keys, " and ", count - kShownKeys, " more");
  return keys;
}

}  // namespace penstock
