#include "client/c/spec_request.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "client/c/signs_of_life.h"
#include "ring/descriptor.h"
#include "ring/layout.h"
#include "ring/nanoseconds.h"

namespace penstock_client {
namespace {

using penstock::ring::AttachReply;
using penstock::ring::AttachRequest;
using penstock::ring::Code;
using penstock::ring::Descriptor;
using penstock::ring::kNsPerMs;
using penstock::ring::kNsPerSecond;
using penstock::ring::Operation;
using penstock::ring::Status;

// An answer is a description of one pipeline.
constexpr off_t kMaxAnswerBytes = 64 << 20;

Status Gone(const std::string& path) {
  return {Code::kUnavailable,
          "penstockd at " + path +
              " closed the connection without an answer; is it a penstockd, and of this "
              "release? penstock --socket " +
              path + " list"};
}

// How long a daemon may take to accept a connection.
constexpr uint64_t kConnectNs = 10'000'000'000;

// A connection whose reads wait, no longer than that for the rest of an answer that has begun.
Status Connect(const std::string& path, const SpecRequest& asked, Descriptor* out) {
  int made = -1;
  const uint64_t silence_ns_max = asked.silence_ns_max;
  Status status = penstock::ring::ConnectToDaemon(path, kConnectNs, &made, asked.is_cancelled);
  if (!status.ok()) return status;
  *out = Descriptor(made);
  const int flags = fcntl(made, F_GETFL);
  timeval longest = {};
  longest.tv_sec = static_cast<time_t>(silence_ns_max / kNsPerSecond);
  longest.tv_usec = static_cast<suseconds_t>(silence_ns_max % kNsPerSecond / 1000 + 1);
  if (flags < 0 || fcntl(made, F_SETFL, flags & ~O_NONBLOCK) != 0 ||
      setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest) != 0)
    return {Code::kInternal, std::string("a connection cannot wait: ") + std::strerror(errno)};
  return {};
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Sends the request with the memory file beside its first byte.
bool Send(int socket, const AttachRequest& request, int file) {
  const auto* bytes = reinterpret_cast<const char*>(&request);
  size_t done = 0;
  while (done < sizeof request) {
    iovec part = {const_cast<char*>(bytes + done), sizeof request - done};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
    if (done == 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof file);
      std::memcpy(CMSG_DATA(head), &file, sizeof file);
    }
    const ssize_t count = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

// Waits for something to read.
Status WaitForAnswer(int socket, const std::string& path, const SpecRequest& asked) {
  SignsOfLife signs(path, asked.silence_ns_max);
  while (!signs.Wait(socket)) {
    if (asked.is_cancelled != nullptr && asked.is_cancelled())
      return {Code::kCancelled, "gave up waiting for an answer of penstockd at " + path};
    if (signs.missing()) {
      return {Code::kUnavailable,
              "penstockd at " + path + " gave no sign of life in " +
                  std::to_string(asked.silence_ns_max / kNsPerMs) +
                  " ms: it stands still, or its machine is overloaded; what was "
                  "asked for may still be done when it goes on"};
    }
  }
  return {};
}

// The whole reply, and the memory file that comes with it, if any.
bool Receive(int socket, AttachReply* reply, Descriptor* file) {
  auto* const bytes = reinterpret_cast<char*>(reply);
  size_t done = 0;
  while (done < sizeof *reply) {
    iovec part = {bytes + done, sizeof *reply - done};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      for (size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
        *file = Descriptor(fd);
      }
    }
    done += static_cast<size_t>(count);
  }
  return true;
}

bool ReadAll(int fd, std::string* out) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || info.st_size > kMaxAnswerBytes) return false;
  out->resize(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < out->size()) {
    const ssize_t count =
        pread(fd, out->data() + done, out->size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

Status RequestSpec(const std::string& socket_path, const SpecRequest& asked, std::string* answer,
                   Descriptor* connection) {
  AttachRequest request = penstock::ring::EncodeRequest(asked.name, "");
  if (asked.name.size() > sizeof request.pipeline) {
    return {Code::kInvalidArgument, "a pipeline's name has at most " +
                                        std::to_string(sizeof request.pipeline) +
                                        " bytes: " + std::to_string(asked.name.size())};
  }
  const std::unique_ptr<char, decltype(&free)> folder(get_current_dir_name(), &free);
  const std::string_view parts[] = {asked.spec, "spec", folder != nullptr ? folder.get() : "/",
                                    asked.cursor};
  request.operation = static_cast<uint32_t>(asked.operation);
  request.world_hosts = asked.world_hosts;
  request.world_host = asked.world_host;
  request.fewest_hosts = asked.fewest_hosts;
  if (asked.temporary) request.flags = penstock::ring::kRequestTemporary;
  Descriptor file(memfd_create("penstock-request", MFD_CLOEXEC));
  bool written = static_cast<bool>(file);
  for (size_t i = 0; written && asked.offered < 0 && i < std::size(parts); ++i) {
    request.part_bytes[i] = static_cast<uint32_t>(parts[i].size());
    written = parts[i].size() <= UINT32_MAX && WriteAll(file.get(), parts[i]);
  }
  if (!written)
    return {Code::kResourceExhausted, std::string("no memory file: ") + std::strerror(errno)};
  Descriptor socket;
  if (Status status = Connect(socket_path, asked, &socket); !status.ok()) return status;
  AttachReply reply;
  Descriptor answered;
  // Who is refused at the door may be hung up on before the request is sent: the answer is there.
  const int sent = asked.offered < 0 ? file.get() : asked.offered;
  if (!Send(socket.get(), request, sent) && errno != EPIPE && errno != ECONNRESET)
    return Gone(socket_path);
  if (Status status = WaitForAnswer(socket.get(), socket_path, asked); !status.ok()) return status;
  if (!Receive(socket.get(), &reply, &answered)) return Gone(socket_path);
  if (reply.magic != penstock::ring::kReplyMagic)
    return {Code::kFailedPrecondition,
            socket_path + " is no penstockd: it answers another protocol"};
  if (reply.code != 0) {
    const size_t size = std::min<size_t>(reply.message_bytes, sizeof reply.message);
    return {static_cast<Code>(reply.code), std::string(reply.message, size)};
  }
  answer->clear();
  if (answered && !ReadAll(answered.get(), answer)) return Gone(socket_path);
  if (connection != nullptr) *connection = std::move(socket);
  return {};
}

}  // namespace penstock_client
