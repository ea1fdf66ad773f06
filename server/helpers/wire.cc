#include "server/helpers/wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "io/file/crc32c.h"

namespace penstock {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr int64_t kMs = 1'000'000;

// What is written meanwhile leaves in packets that are full, and the rest at the end.
class Corked {
 public:
  explicit Corked(int socket) : socket_(socket) { Set(1); }
  ~Corked() { Set(0); }
  Corked(const Corked&) = delete;
  Corked& operator=(const Corked&) = delete;

 private:
  // Where there is no such option, packets are smaller.
  void Set(int on) const { setsockopt(socket_, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)); }

  const int socket_;
};

}  // namespace

Wire::Wire(ring::Descriptor socket, TlsSession session, const std::atomic<bool>& stop, int bell)
    : socket_(std::move(socket)),
      session_(std::move(session)),
      stop_(stop),
      bell_(bell),
      heard_ns_(MonotonicNs()) {}

absl::Status Wire::Gone() const {
  if (session_ != nullptr) return absl::UnavailableError(TlsError());
  return absl::UnavailableError(error_ == 0 ? "the connection was closed"
                                            : std::string(std::strerror(error_)));
}

absl::Status Wire::WaitFor(short events, int64_t begun_ns, const Patience& patience) {
  while (true) {
    if (stop_.load(std::memory_order_relaxed)) return absl::CancelledError("it is being stopped");
    const int64_t now_ns = MonotonicNs();
    const int64_t end_ns = patience.until_ns == 0
                               ? begun_ns + patience.silence_ms * kMs
                               : std::min(begun_ns + patience.silence_ms * kMs, patience.until_ns);
    if (now_ns >= end_ns) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer for ", (now_ns - begun_ns) / kMs, " ms"));
    }
    pollfd waited{socket_.get(), events, 0};
    const auto left_ms = static_cast<int>(std::min<int64_t>((end_ns - now_ns) / kMs + 1, kLookMs));
    if (poll(&waited, 1, left_ms) > 0) return absl::OkStatus();
  }
}

int64_t Wire::ReadSome(uint8_t* to, size_t bytes, short* events) {
  *events = POLLIN;
  if (session_ == nullptr) {
    const ssize_t got = recv(socket_.get(), to, bytes, 0);
    if (got > 0) return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    error_ = got < 0 ? errno : 0;
    return -1;
  }
  ERR_clear_error();
  const int got = SSL_read(session_.get(), to, static_cast<int>(std::min(bytes, size_t{1} << 30)));
  if (got > 0) return got;
  const int error = SSL_get_error(session_.get(), got);
  if (error == SSL_ERROR_WANT_WRITE) *events = POLLOUT;
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

int64_t Wire::WriteSome(const uint8_t* from, size_t bytes, short* events) {
  *events = POLLOUT;
  if (session_ == nullptr) {
    const ssize_t put = send(socket_.get(), from, bytes, MSG_NOSIGNAL);
    if (put > 0) return put;
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    error_ = put < 0 ? errno : 0;
    return -1;
  }
  ERR_clear_error();
  const int put =
      SSL_write(session_.get(), from, static_cast<int>(std::min(bytes, size_t{1} << 30)));
  if (put > 0) return put;
  const int error = SSL_get_error(session_.get(), put);
  if (error == SSL_ERROR_WANT_READ) *events = POLLIN;
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

absl::Status Wire::Handshake(const Patience& patience) {
  if (session_ == nullptr) return absl::OkStatus();
  const int64_t begun_ns = MonotonicNs();
  while (true) {
    ERR_clear_error();
    const int done = SSL_do_handshake(session_.get());
    if (done == 1) return absl::OkStatus();
    const int error = SSL_get_error(session_.get(), done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      const long verified = SSL_get_verify_result(session_.get());
      if (verified != X509_V_OK) {
        return absl::UnauthenticatedError(
            absl::StrCat("its certificate is refused: ", X509_verify_cert_error_string(verified)));
      }
      return absl::UnauthenticatedError(absl::StrCat("no TLS: ", TlsError()));
    }
    absl::Status status =
        WaitFor(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, begun_ns, patience);
    if (!status.ok()) return status;
  }
}

Wire::Woken Wire::Wait(int64_t timeout_ms) {
  if (session_ != nullptr && SSL_has_pending(session_.get()) != 0) return Woken::kByBytes;
  pollfd waited[2] = {{socket_.get(), POLLIN, 0}, {bell_, POLLIN, 0}};
  poll(waited, bell_ < 0 ? 1 : 2, static_cast<int>(timeout_ms));
  if (bell_ >= 0 && (waited[1].revents & POLLIN) != 0) {
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(bell_, &count, sizeof(count));
  }
  return waited[0].revents != 0 ? Woken::kByBytes : Woken::kOtherwise;
}

absl::Status Wire::Read(uint8_t* to, size_t bytes, const Patience& patience) {
  int64_t begun_ns = MonotonicNs();
  while (bytes > 0) {
    short events = 0;
    const int64_t got = ReadSome(to, bytes, &events);
    if (got < 0) return Gone();
    if (got == 0) {
      absl::Status status = WaitFor(events, begun_ns, patience);
      if (!status.ok()) return status;
      continue;
    }
    begun_ns = heard_ns_ = MonotonicNs();
    if (patience.until_ns != 0 && begun_ns >= patience.until_ns)
      return absl::DeadlineExceededError("its bytes come too slowly");
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status Wire::ReadData(uint8_t* to, size_t bytes, const Patience& patience, uint32_t* crc) {
  while (bytes > 0) {
    const size_t piece = std::min(bytes, kPieceBytes);
    absl::Status status = Read(to, piece, patience);
    if (!status.ok()) return status;
    if (has_checksums()) *crc = ExtendCrc32c(*crc, to, piece);
    to += piece;
    bytes -= piece;
  }
  return absl::OkStatus();
}

absl::Status Wire::Drop(uint64_t bytes, const Patience& patience) {
  std::vector<uint8_t> dropped(std::min<uint64_t>(bytes, kPieceBytes));
  while (bytes > 0) {
    const size_t piece = std::min<uint64_t>(bytes, dropped.size());
    absl::Status status = Read(dropped.data(), piece, patience);
    if (!status.ok()) return status;
    bytes -= piece;
  }
  return absl::OkStatus();
}

absl::Status Wire::Write(const uint8_t* from, size_t bytes, const Patience& patience) {
  absl::Status status = WriteAll(from, bytes, patience);
  return status.ok() ? Flush(patience) : status;
}

absl::Status Wire::Flush(const Patience& patience) {
  if (session_ == nullptr) return absl::OkStatus();
  int64_t begun_ns = MonotonicNs();
  BIO* const written = SSL_get_wbio(session_.get());
  while (true) {
    ERR_clear_error();
    const long before = BIO_wpending(written);
    if (BIO_flush(written) > 0) return absl::OkStatus();
    if (!BIO_should_retry(written)) return Gone();
    if (BIO_wpending(written) < before) begun_ns = MonotonicNs();
    absl::Status status = WaitFor(POLLOUT, begun_ns, patience);
    if (!status.ok()) return status;
  }
}

absl::Status Wire::WriteAll(const uint8_t* from, size_t bytes, const Patience& patience) {
  int64_t begun_ns = MonotonicNs();
  while (bytes > 0) {
    short events = 0;
    const int64_t put = WriteSome(from, bytes, &events);
    if (put < 0) return Gone();
    if (put == 0) {
      absl::Status status = WaitFor(events, begun_ns, patience);
      if (!status.ok()) return status;
      continue;
    }
    begun_ns = MonotonicNs();
    from += put;
    bytes -= static_cast<size_t>(put);
  }
  return absl::OkStatus();
}

absl::StatusOr<Frame> Wire::ReadFrame(std::string* meta, uint32_t meta_max,
                                      const Patience& patience) {
  std::array<uint8_t, kFrameBytes> head;
  absl::Status status = Read(head.data(), head.size(), patience);
  if (!status.ok()) return status;
  absl::StatusOr<Frame> frame = DecodeFrame(head);
  if (!frame.ok()) return frame.status();
  if (frame->meta_bytes > meta_max) {
    return absl::DataLossError(absl::StrCat("a message longer than limit: ", frame->meta_bytes,
                                            " > ", meta_max, " bytes"));
  }
  meta->resize(frame->meta_bytes);
  auto* const text = reinterpret_cast<uint8_t*>(meta->data());
  status = Read(text, meta->size(), patience);
  if (!status.ok()) return status;
  if (Crc32c(text, meta->size()) != frame->meta_crc)
    return absl::DataLossError("a message was changed on its way (CRC-32C)");
  return frame;
}

absl::Status Wire::WriteFrame(Frame frame, absl::string_view meta, const Patience& patience) {
  return WriteWithData(frame, meta, {}, patience);
}

absl::Status Wire::WriteWithData(Frame frame, absl::string_view meta, Parts data,
                                 const Patience& patience) {
  for (const absl::Span<const uint8_t> part : data) {
    frame.data_bytes += part.size();
    if (has_checksums()) frame.data_crc = ExtendCrc32c(frame.data_crc, part.data(), part.size());
  }
  const auto* const text = reinterpret_cast<const uint8_t*>(meta.data());
  frame.meta_bytes = static_cast<uint32_t>(meta.size());
  frame.meta_crc = Crc32c(text, meta.size());
  const std::array<uint8_t, kFrameBytes> head = EncodeFrame(frame);
  std::optional<Corked> corked;
  if (!data.empty()) corked.emplace(socket_.get());
  absl::Status status = WriteAll(head.data(), head.size(), patience);
  if (status.ok()) status = WriteAll(text, meta.size(), patience);
  for (size_t i = 0; i < data.size() && status.ok(); ++i)
    status = WriteAll(data[i].data(), data[i].size(), patience);
  return status.ok() ? Flush(patience) : status;
}

}  // namespace penstock
