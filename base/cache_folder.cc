#include "base/cache_folder.h"

#include <cstdlib>

namespace penstock {

std::string CacheFolder(std::string_view name) {
  struct Place {
    const char* variable;
    const char* below;
  };
  for (const Place& place :
       {Place{"PENSTOCK_CACHE_DIR", "/"}, Place{"XDG_CACHE_HOME", "/penstock/"},
        Place{"HOME", "/.cache/penstock/"}}) {
    const char* folder = std::getenv(place.variable);
    if (folder != nullptr && folder[0] == '/')
      return std::string(folder) + place.below + std::string(name);
  }
  return "";
}

}  // namespace penstock
