// Anonymous memory files: how both kinds of shared memory are made and mapped in the daemon.
//
// Threads:  any; no state.
// Owns:     the caller owns what is handed out.
#pragma once

#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>

#include "ring/aligned_map.h"
#include "ring/descriptor.h"
#include "ring/status.h"

namespace penstock::ring {

// Creates a memfd of `bytes`, maps it to be written, and puts `seals` (F_SEAL_…) on it afterwards.
// Pages are taken from the system only when they are touched.
Status CreateMemoryFile(const char* name, uint64_t bytes, int seals, Descriptor* fd,
                        boost::interprocess::mapped_region* region);

}  // namespace penstock::ring
