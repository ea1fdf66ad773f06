#include "server/text/parts/parts.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::text {
namespace {

template <typename Part>
std::map<std::string_view, typename PartRegistration<Part>::Make>& Registry() {
  static auto& registry = *new std::map<std::string_view, typename PartRegistration<Part>::Make>;
  return registry;
}

// A part may hold others of its kind; no published file does so more than twice.
constexpr int kNestedMax = 16;
thread_local int nested = 0;

}  // namespace

template <typename Part>
PartRegistration<Part>::PartRegistration(std::string_view type, Make make) {
  Registry<Part>().emplace(type, make);
}

template <typename Part>
absl::StatusOr<std::unique_ptr<Part>> MakePart(const JsonPart& json) {
  if (absl::Status status = json.MustBeObject(); !status.ok()) return status;
  std::string type;
  if (absl::Status status = json["type"].Read(&type); !status.ok()) return status;
  return MakePartOfType<Part>(type, json);
}

template <typename Part>
absl::StatusOr<std::unique_ptr<Part>> MakePartOfType(std::string_view type, const JsonPart& json) {
  const auto& registry = Registry<Part>();
  const auto found = registry.find(type);
  if (found == registry.end()) {
    return json["type"].Refuse(absl::StrCat(
        "one of ", absl::StrJoin(registry, ", ", [](std::string* out, const auto& entry) {
          out->append(entry.first);
        })));
  }
  if (nested >= kNestedMax) return json.Refuse("at most 16 parts in each other");
  ++nested;
  auto part = found->second(json);
  --nested;
  return part;
}

#define PENSTOCK_TEXT_PART(Part)                                                        \
  template struct PartRegistration<Part>;                                               \
  template absl::StatusOr<std::unique_ptr<Part>> MakePart<Part>(const JsonPart&);       \
  template absl::StatusOr<std::unique_ptr<Part>> MakePartOfType<Part>(std::string_view, \
                                                                      const JsonPart&);
PENSTOCK_TEXT_PART(Normalizer)
PENSTOCK_TEXT_PART(Pretokenizer)
PENSTOCK_TEXT_PART(Model)
PENSTOCK_TEXT_PART(Processor)
PENSTOCK_TEXT_PART(Decoder)

}  // namespace penstock::text
