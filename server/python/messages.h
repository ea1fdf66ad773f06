// What penstockd and a worker process tell each other over their socket, and where memory lies that
// both have. client/python/penstock/_worker reads and writes the same.
//
//     inputs    0: the configuration (JSON)   1 << 40: tray 0   2 << 40: tray 1   …
//     outputs   0: Progress                   1 << 40: tray 0   2 << 40: tray 1   …
//
// Both files are sparse, as large from the beginning as they can become, and sealed against any
// other size: a tray grows by being written to, and no worker can take memory away from the daemon.
//
// Threads:  plain values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::python {

// One is worked on, and the next ones lie ready: a worker never waits for the daemon.
inline constexpr int kTrays = 4;
inline constexpr uint64_t kTrayStride = uint64_t{1} << 40;
// Of what one tray may hold.
inline constexpr uint64_t kMaxTrayBytes = uint64_t{16} << 30;
// Of the text behind a message.
inline constexpr size_t kMaxTextBytes = 32 << 10;

enum class What : uint32_t {
  // From the daemon.
  kWork = 1,       // `rows` rows lie in a tray's inputs, of `bytes`
  kLeave = 2,      // no more work comes
  kConfigure = 3,  // another configuration, of `bytes`; it says again that it is ready
  // From a worker.
  kReady = 16,       // the function is loaded
  kCannotLoad = 17,  // it cannot be, as the text says
  kMade = 18,        // the rows of a sheet are in the tray's outputs, of `bytes`
  kFailed = 19,      // `rows` rows are, and the one behind them fails, as the text says
};

// A message of a worker may have a text behind it.
struct Message {
  uint32_t what = 0;
  uint32_t tray = 0;
  uint64_t sheet = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(Message) == 32);

// Where a worker is: written by it at any time, read by the daemon when it has died or takes long.
struct Progress {
  uint64_t sheet = 0;
  uint64_t row = 0;  // its number in the sheet, and 1; 0: none, and what it does is its own affair
  uint64_t begun = 0;  // grows where a row begins that may have the number of the one before it
  bool operator==(const Progress&) const = default;
};

}  // namespace penstock::python
