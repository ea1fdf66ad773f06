// Where what can be made again is kept between runs.
//
// Threads:  any, while none changes the environment.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

// $PENSTOCK_CACHE_DIR, else $XDG_CACHE_HOME/penstock, else $HOME/.cache/penstock, with `name`
// appended; "" when none of them is an absolute path. Nothing is made.
std::string CacheFolder(std::string_view name);

}  // namespace penstock
