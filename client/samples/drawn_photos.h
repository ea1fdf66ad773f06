// Pictures of flowers, for those who have no photographs at hand.
//
// Threads:  safe from any thread.
#pragma once

#include <vector>

#include "client/samples/photo.h"

namespace penstock::samples {

// One picture for each kind of flower: the kind at index i has i + 3 petals. The same libm gives the same pixels.
std::vector<Photo> DrawFlowers();

}  // namespace penstock::samples
