// One simulated history: a pipeline, its disk, its workers and its consumers, all driven by one
// seed.
//
// The pipeline runs undisturbed with one worker first; that is the reference. Then it runs in one
// to four lives. In each of them the seed decides which worker goes on and by how much, which reads
// and blocks are held back, what the disk does, and when consumers take steps, give them back, die
// and come back. A life ends with the stream, with a fault of the disk, or by being stopped
// somewhere; the next one goes on from the cursor of a step of it, with other workers.
//
// What must hold: every step is the reference's, in order, without gap or repeat, and stays so
// while a consumer has it; the end and its error are the reference's; nothing follows it; a broken
// disk gives the steps before it and an error; nobody sleeps while there is something to do;
// nothing is read behind a stop; every record cell comes back.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::test {

struct HistoryReport {
  std::string failure;  // "" when all held
  std::string pipeline;
  uint64_t steps = 0;  // published, of all lives
  int lives = 0;
  int broken = 0;      // lives that a fault of the disk ended
  bool ends = false;   // the reference has an end
  bool fails = false;  // and it is an error
};

HistoryReport RunHistory(uint64_t seed);

// Histories of the seeds from `seed` on; the first failure with its pipeline and how to repeat it,
// or "". Figures are added up in `total`.
std::string RunHistories(uint64_t seed, uint64_t count, HistoryReport* total);

}  // namespace penstock::test
