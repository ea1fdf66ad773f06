// How users share a limited number of places that nobody is turned out of.
#pragma once

#include <cstddef>

namespace penstock::ring {

// Whether somebody who has `of_user` of the `taken` places may take a further one: the last eighth
// is kept for users who have less than that.
inline bool MayTakePlace(size_t taken, size_t of_user, size_t limit) {
  const size_t kept = limit / 8;
  return taken < limit - kept || (taken < limit && of_user < kept);
}

}  // namespace penstock::ring
