#include "server/engine/spec/descriptor_path.h"

#include <string>

#include "server/engine/spec/spec_paths.h"

namespace penstock {
namespace {

// Cuts digits off the front; false where there are none.
bool TakeNumber(std::string_view* text) {
  const size_t end = text->find_first_not_of("0123456789");
  const size_t digits = end == text->npos ? text->size() : end;
  text->remove_prefix(digits);
  return digits > 0;
}

}  // namespace

bool IsDescriptorPath(std::string_view path) {
  constexpr std::string_view kProc = "/proc/", kDescriptors = "/fd/";
  if (path.substr(0, kProc.size()) != kProc) return false;
  path.remove_prefix(kProc.size());
  if (!TakeNumber(&path) || path.substr(0, kDescriptors.size()) != kDescriptors) return false;
  path.remove_prefix(kDescriptors.size());
  return TakeNumber(&path) && path.empty();
}

void StripDescriptorPaths(v1::Stage* stage) {
  VisitAllPaths(stage, [](PathKind kind, std::string* path) {
    if (kind == PathKind::kArrays && IsDescriptorPath(*path)) path->clear();
  });
}

}  // namespace penstock
