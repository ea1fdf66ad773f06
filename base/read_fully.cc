#include "base/read_fully.h"

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::StatusOr<size_t> ReadFully(const std::string& path, uint64_t offset, absl::Span<uint8_t> out,
                                 ReadCall read, PauseCall pause) {
  size_t done = 0;
  int tries = 0;
  int64_t pause_ns = kFirstPauseNs;
  while (done < out.size()) {
    const ssize_t count = read(out.data() + done, out.size() - done, offset + done);
    if (count == 0) break;
    if (count > 0) {
      done += count;
      // What moves forward is no failing disk.
      tries = 0;
      pause_ns = kFirstPauseNs;
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    if ((error != EIO && error != EAGAIN) || ++tries == kReadTries) {
      return absl::ErrnoToStatus(error,
                                 absl::StrCat("cannot read ", path, " at offset ", offset + done));
    }
    pause(pause_ns);
    pause_ns *= 4;
  }
  return done;
}

}  // namespace penstock
