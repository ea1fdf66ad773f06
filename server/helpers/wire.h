// One connection between a daemon and a helper, with TLS or without, and the frames on it. No call
// waits for longer than it is told to.
//
// Threads:  one. `stop`, and who rings the bell, from any.
// Owns:     the socket and its session.
// Limits:   between two bytes of what has begun, and for all of it, what Patience says; a stop ends
//           a call within kLookMs.
// Cost:     a system call for each 256 KiB; their checksum is computed while they are in the cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ring/descriptor.h"
#include "server/helpers/frame.h"
#include "server/helpers/tls.h"

namespace penstock {

class Wire {
 public:
  static constexpr int kLookMs = 50;

  // `session` may be null; `bell`, an eventfd, or -1.
  Wire(ring::Descriptor socket, TlsSession session, const std::atomic<bool>& stop, int bell);

  struct Patience {
    int64_t silence_ms = 5'000;  // without a byte
    int64_t until_ns = 0;        // MonotonicNs() when all of it is to be there; 0: any time
  };

  absl::Status Handshake(const Patience& patience);

  // Until something comes, the bell has been rung, or so long.
  enum class Woken { kByBytes, kOtherwise };
  Woken Wait(int64_t timeout_ms);

  absl::Status Read(uint8_t* to, size_t bytes, const Patience& patience);
  // `*crc` goes on over them, where checksums are checked (has_checksums()).
  absl::Status ReadData(uint8_t* to, size_t bytes, const Patience& patience, uint32_t* crc);
  // Drops so many bytes.
  absl::Status Drop(uint64_t bytes, const Patience& patience);
  absl::Status Write(const uint8_t* from, size_t bytes, const Patience& patience);

  // With its message, of at most `meta_max` bytes, but not its data.
  absl::StatusOr<Frame> ReadFrame(std::string* meta, uint32_t meta_max, const Patience& patience);
  // Fills in what the frame says of the message.
  absl::Status WriteFrame(Frame frame, absl::string_view meta, const Patience& patience);
  // The same with the data, of which it fills in the size and the checksum.
  using Parts = absl::Span<const absl::Span<const uint8_t>>;
  absl::Status WriteWithData(Frame frame, absl::string_view meta, Parts data,
                             const Patience& patience);

  // Whether data has checksums: TLS' own cover the same bytes on the same way.
  bool has_checksums() const { return session_ == nullptr; }

  // When the last bytes came.
  int64_t heard_ns() const { return heard_ns_; }
  SSL* session() const { return session_.get(); }

 private:
  // One try: bytes moved, 0 where it would block (then `*events` is what to wait for), -1: over.
  int64_t ReadSome(uint8_t* to, size_t bytes, short* events);
  int64_t WriteSome(const uint8_t* from, size_t bytes, short* events);
  absl::Status WriteAll(const uint8_t* from, size_t bytes, const Patience& patience);
  // What WriteAll() has gathered leaves.
  absl::Status Flush(const Patience& patience);
  absl::Status WaitFor(short events, int64_t begun_ns, const Patience& patience);
  absl::Status Gone() const;

  const ring::Descriptor socket_;
  const TlsSession session_;
  const std::atomic<bool>& stop_;
  const int bell_;
  int64_t heard_ns_;
  int error_ = 0;
};

}  // namespace penstock
