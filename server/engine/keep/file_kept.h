// Elements that are kept in files (file_cache.h): written by the workers as they are computed, and
// dealt from a file's map once it is durable. Where there was no room for all of them, passes that
// find room write further ones behind those that are there.
//
// Threads:  one at a time (the front's lock); the workers write.
// Owns:     the file that it writes, with its lock, and the maps of those that it deals from
//           (kept_parts.h).
// Limits:   kBlocksInFlight blocks of elements wait to be written; who brings more waits for the
//           disk.
// Cost:     the first time that an element of somebody else's file is dealt, the front goes through
//           its bytes for their checksum.
#pragma once

#include <memory>

#include "server/engine/keep/file_cache.h"
#include "server/engine/keep/kept_order.h"
#include "server/engine/read/element_cells.h"

namespace penstock {

// What becomes of elements that cannot be written.
enum class Unwritten : uint8_t {
  kComputed,  // they are computed again
  kFails,     // they end the stream
};

// `stage`: whose gauge it sets. `cells`: of the elements; the plan's.
std::unique_ptr<KeptElements> MakeFileKept(FrontContext& context,
                                           std::shared_ptr<const FileCache> cache,
                                           const ElementCells& cells, int stage,
                                           Unwritten unwritten);

}  // namespace penstock
