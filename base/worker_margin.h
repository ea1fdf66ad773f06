// How many workers are enough for measured work, for threads and for processes.
//
// Threads:  constants.
#pragma once

namespace penstock {

// Times the work, in workers that are always busy. What is left free is there for what takes longer
// than the rest, so that nobody waits for it.
inline constexpr double kWorkerMargin = 1.15;

}  // namespace penstock
