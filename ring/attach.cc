#include "ring/attach.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>

#include "ring/descriptor.h"
#include "ring/futex.h"
#include "ring/layout.h"
#include "ring/nanoseconds.h"
#include "ring/printable.h"

namespace penstock::ring {
namespace {

// What both structures have in common in every version: magic, ABI version, size.
constexpr size_t kPrefixBytes = 16;

Status VersionMismatch(uint32_t client, uint32_t daemon) {
  return {Code::kFailedPrecondition,
          "client and penstockd speak different versions of the ring's ABI: the client " +
              std::to_string(client) + ", the daemon " + std::to_string(daemon) +
              "; install the same release of both"};
}

void CopyText(std::string_view text, char* to, uint32_t capacity, uint32_t* bytes) {
  *bytes = static_cast<uint32_t>(std::min<size_t>(text.size(), capacity));
  if (*bytes > 0) std::memcpy(to, text.data(), *bytes);
}

// What stands at a path that is no socket.
const char* KindOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFREG:
      return "a regular file";
    case S_IFIFO:
      return "a named pipe";
    default:
      return "a device";
  }
}

// Where nothing is found at a path: what of it there is.
std::string WhatIsMissing(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t bytes = readlink(path.c_str(), target.data(), target.size());
  if (bytes >= 0) {
    target.resize(static_cast<size_t>(bytes));
    return "it is a symbolic link to " + target + ", which is not there";
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  struct stat info = {};
  if (folder.empty() || stat(folder.c_str(), &info) == 0) {
    if (!folder.empty() && !S_ISDIR(info.st_mode))
      return folder + " is " + KindOf(info.st_mode) + ", and no folder";
    return "there is no such socket";
  }
  return "there is no such folder";
}

Status NoPermission(const std::string& path) {
  struct stat info = {};
  const std::string you = "you are user " + std::to_string(geteuid());
  if (stat(path.c_str(), &info) == 0) {
    return {Code::kPermissionDenied, "no permission to connect to " + path + ": " + you +
                                         ", the socket's owner is " + std::to_string(info.st_uid) +
                                         "; look at it: ls -l " + path};
  }
  return {Code::kPermissionDenied,
          "no permission to reach " + path + ": " + you +
              ", who may not pass one of its folders; look at them: namei -l " + path};
}

// Why connect() failed, and what to do about it.
Status ConnectError(const std::string& path, int error) {
  struct stat info = {};
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {Code::kUnavailable, "no penstockd at " + path + ": " + WhatIsMissing(path) +
                                      "; start one: penstockd --socket " + path};
    case ELOOP:
      return {Code::kFailedPrecondition,
              path +
                  " is no penstockd: its symbolic links lead in a circle, or are too many; give "
                  "the right socket"};
    case ECONNREFUSED:
      if (stat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
        return {Code::kFailedPrecondition, path + " is no penstockd: it is " +
                                               KindOf(info.st_mode) +
                                               ", and no socket; give the right socket"};
      }
      return {Code::kUnavailable, "no penstockd at " + path +
                                      ": nobody listens on this socket any more; start one: "
                                      "penstockd --socket " +
                                      path};
    case EPROTOTYPE:
      return {Code::kFailedPrecondition,
              path + " is no penstockd: it is a socket of another kind; give the right socket"};
    case EACCES:
    case EPERM:
      return NoPermission(path);
    default:
      return {Code::kUnavailable, "cannot connect to penstockd at " + path + ": " +
                                      std::strerror(error) + "; is it running? penstock --socket " +
                                      path + " list"};
  }
}

bool WaitFor(int socket, short events, uint64_t deadline_ns) {
  while (true) {
    const uint64_t now = MonotonicNs();
    if (now >= deadline_ns) return false;
    pollfd entry = {socket, events, 0};
    const uint64_t wait_ms = std::min<uint64_t>((deadline_ns - now) / kNsPerMs + 1, 60'000);
    if (poll(&entry, 1, static_cast<int>(wait_ms)) > 0) return true;
  }
}

Status NoAnswer(const std::string& path, uint64_t timeout_ns) {
  return {Code::kUnavailable, "penstockd at " + path +
                                  " accepted the connection but did not answer in " +
                                  std::to_string(timeout_ns / kNsPerMs) +
                                  " ms; see: penstock --socket " + path + " list"};
}

Status GaveUp(const std::string& path) {
  return {Code::kCancelled, "gave up waiting for an answer of penstockd at " + path};
}

Status Connect(const std::string& path, uint64_t timeout_ns, Descriptor* out,
               const std::function<bool()>& is_cancelled) {
  const uint64_t start_ns = MonotonicNs();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return {Code::kInvalidArgument,
            "a socket's path has 1 to " + std::to_string(sizeof address.sun_path - 1) +
                " bytes: " + std::to_string(path.size()) + " (" + path + ")"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return ConnectError(path, errno);
  uint64_t asked_ns = start_ns;
  while (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    // EAGAIN: the daemon's queue of connections is full. There is nothing to poll for.
    const int error = errno;
    const uint64_t now_ns = MonotonicNs();
    if ((error != EAGAIN && error != EINTR) || now_ns - start_ns >= timeout_ns)
      return ConnectError(path, error);
    if (is_cancelled != nullptr && now_ns - asked_ns >= kCancelNs) {
      asked_ns = now_ns;
      if (is_cancelled()) return GaveUp(path);
    }
    poll(nullptr, 0, 1);
  }
  *out = std::move(made);
  return {};
}

Status NotPenstockd(const std::string& path) {
  return {Code::kFailedPrecondition,
          path + " is no penstockd: it answers another protocol; give the right socket"};
}

Status ClosedWithoutAnswer(const std::string& path) {
  return {Code::kUnavailable, "penstockd at " + path +
                                  " closed the connection without an answer; is it a "
                                  "penstockd, and of this release? penstock --socket " +
                                  path + " list"};
}

// Waits for a whole reply without taking a byte of it, so that it can be asked for again. `done` is
// false when it has not come in time.
Status WaitForReply(int socket, const std::string& path, uint64_t deadline_ns, bool* done) {
  *done = false;
  while (true) {
    uint8_t bytes[sizeof(AttachReply)];
    const ssize_t count = recv(socket, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (count == 0) return ClosedWithoutAnswer(path);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return ClosedWithoutAnswer(path);
    if (count >= static_cast<ssize_t>(sizeof kReplyMagic) &&
        std::memcmp(bytes, &kReplyMagic, sizeof kReplyMagic) != 0) {
      // What answers is something else, such as an HTTP server.
      return NotPenstockd(path);
    }
    if (count == sizeof bytes) {
      *done = true;
      return {};
    }
    if (count > 0) {
      // A part of a reply: its end has to come, or the connection's. Polling would return at once.
      pollfd hang_up = {socket, POLLRDHUP, 0};
      if (poll(&hang_up, 1, 1) > 0 && (hang_up.revents & (POLLRDHUP | POLLHUP)) != 0) {
        return ClosedWithoutAnswer(path);
      }
      if (MonotonicNs() >= deadline_ns) return {};
      continue;
    }
    if (!WaitFor(socket, POLLIN, deadline_ns)) return {};
  }
}

// Reads the reply that WaitForReply() has seen, and the descriptors that come with its first byte.
Status ReadReply(int socket, const std::string& path, AttachReply* reply, Descriptor* descriptors) {
  size_t have = 0;
  uint8_t* bytes = reinterpret_cast<uint8_t*>(reply);
  while (have < sizeof *reply) {
    iovec part = {bytes + have, sizeof *reply - have};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxAttachDescriptors * sizeof(int))];
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ClosedWithoutAnswer(path);
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      const size_t received = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < received; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
        Descriptor owned(fd);
        if (i < kMaxAttachDescriptors) descriptors[i] = std::move(owned);
      }
    }
    // With all of them there were more than it knows of.
    if ((message.msg_flags & MSG_CTRUNC) != 0 && !descriptors[kMaxAttachDescriptors - 1]) {
      return {Code::kResourceExhausted,
              "the ring of penstockd at " + path +
                  " cannot be taken: this process may open no further descriptors; see ulimit -n"};
    }
    have += static_cast<size_t>(count);
  }
  return {};
}

// Sends a reply and up to kMaxAttachDescriptors descriptors.
Status Send(int socket, const Status& status, uint32_t consumer, uint64_t start_step,
            std::span<const int> fds) {
  AttachReply reply = {};
  reply.magic = kReplyMagic;
  reply.abi_version = kAbiVersion;
  reply.reply_bytes = sizeof reply;
  reply.code = static_cast<int32_t>(status.code);
  reply.consumer = consumer;
  reply.start_step = start_step;
  reply.descriptors = static_cast<uint32_t>(fds.size());
  CopyText(status.message, reply.message, sizeof reply.message, &reply.message_bytes);
  iovec part = {&reply, sizeof reply};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxAttachDescriptors * sizeof(int))] = {};
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  }
  ssize_t count;
  do {
    count = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count == sizeof reply) return {};
  return {Code::kUnavailable, std::string("the reply could not be sent: ") +
                                  (count < 0 ? std::strerror(errno) : "the peer does not read")};
}

// The part of a request that says who attaches, and where it stands.
Status ParseConsumer(const AttachRequest& request, ParsedRequest* parsed) {
  if (request.name_bytes > sizeof request.name || request.cursor_bytes > sizeof request.cursor ||
      request.num_held > kMaxReportedLeases || request.num_returned > kMaxReportedLeases) {
    return {Code::kInvalidArgument,
            "a consumer's name has at most 64 bytes, a cursor 1024, and a consumer 64 leases: " +
                std::to_string(request.name_bytes) + ", " + std::to_string(request.cursor_bytes) +
                " and " + std::to_string(request.num_held) + " with " +
                std::to_string(request.num_returned)};
  }
  ConsumerSpec& consumer = parsed->consumer;
  consumer.group.assign(request.group, request.group_bytes);
  if (consumer.group.empty()) consumer.group = "default";
  consumer.mode = static_cast<GroupMode>(request.mode);
  consumer.rank = request.rank;
  consumer.world_size = request.world_size;
  consumer.replica = request.replica;
  consumer.replicas = request.replicas;
  consumer.at_most_once = (request.flags & kRequestAtMostOnce) != 0;
  consumer.slow = static_cast<SlowPolicy>(request.slow);
  consumer.lag_ms = request.lag_ms;
  consumer.identity = request.identity;
  consumer.name.assign(request.name, request.name_bytes);
  consumer.take_over = (request.flags & kRequestTakeOver) != 0;
  consumer.on_device = (request.flags & kRequestOnDevice) != 0;
  ConsumerPosition& position = parsed->position;
  position.step = request.step;
  position.cursor.assign(reinterpret_cast<const char*>(request.cursor), request.cursor_bytes);
  position.held.assign(request.held, request.held + request.num_held);
  position.returned.assign(request.returned, request.returned + request.num_returned);
  return CheckSpec(consumer);
}

}  // namespace

std::string DefaultSocketPath() {
  if (const char* path = std::getenv("PENSTOCK_SOCKET"); path != nullptr && *path != '\0') {
    return path;
  }
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR"); folder != nullptr && *folder != '\0') {
    return std::string(folder) + "/penstock.sock";
  }
  return "/run/penstock/penstock.sock";
}

ParseState ParseRequest(const uint8_t* bytes, size_t size, ParsedRequest* request, Status* error) {
  const auto refuse = [error](Code code, std::string message) {
    *error = {code, std::move(message)};
    return ParseState::kRefused;
  };
  AttachRequest copy = {};
  if (size > 0) std::memcpy(&copy, bytes, std::min(size, sizeof copy));
  const size_t magic_bytes = std::min(size, sizeof copy.magic);
  if (std::memcmp(&copy.magic, &kRequestMagic, magic_bytes) != 0) {
    return refuse(Code::kInvalidArgument, "not a request to attach: it begins with other bytes");
  }
  if (size < kPrefixBytes) return ParseState::kNeedMore;
  if (copy.abi_version != kAbiVersion) {
    *error = VersionMismatch(copy.abi_version, kAbiVersion);
    return ParseState::kRefused;
  }
  if (copy.request_bytes != sizeof copy) {
    return refuse(Code::kInvalidArgument,
                  "a request has " + std::to_string(sizeof copy) +
                      " bytes, this one says: " + std::to_string(copy.request_bytes));
  }
  if (size < sizeof copy) return ParseState::kNeedMore;
  const auto operation = static_cast<Operation>(copy.operation);
  const bool known = copy.operation >= static_cast<uint32_t>(Operation::kAttach) &&
                     copy.operation <= static_cast<uint32_t>(Operation::kOffer);
  const uint32_t known_flags = operation == Operation::kCreate ? kRequestTemporary
                               : operation == Operation::kAttach
                                   ? kRequestTakeOver | kRequestAtMostOnce | kRequestOnDevice
                                   : 0;
  if (!known || (copy.flags & ~known_flags) != 0) {
    return refuse(Code::kUnimplemented,
                  "unknown operation or flags: " + std::to_string(copy.operation) + " and " +
                      std::to_string(copy.flags));
  }
  // A spec has a name of its own.
  const bool needs_name = operation == Operation::kAttach || operation == Operation::kDelete ||
                          operation == Operation::kSkipped || operation == Operation::kStats ||
                          operation == Operation::kRedivide;
  if ((needs_name && copy.pipeline_bytes == 0) || copy.pipeline_bytes > sizeof copy.pipeline ||
      copy.group_bytes > sizeof copy.group) {
    return refuse(Code::kInvalidArgument,
                  "a pipeline's name has 1 to 128 bytes and a group's at most 64: " +
                      std::to_string(copy.pipeline_bytes) + " and " +
                      std::to_string(copy.group_bytes));
  }
  uint64_t parts_bytes = 0;
  for (const uint32_t bytes : copy.part_bytes) parts_bytes += bytes;
  if (parts_bytes > kMaxPartsBytes) {
    return refuse(
        Code::kInvalidArgument,
        "a spec with what comes along is longer than the limit: " + std::to_string(parts_bytes) +
            " > " + std::to_string(kMaxPartsBytes) + " bytes");
  }
  // Answers and the log repeat it.
  if (!IsPrintableUtf8({copy.pipeline, copy.pipeline_bytes})) {
    return refuse(Code::kInvalidArgument,
                  "a pipeline's name is text in UTF-8 without control characters");
  }
  request->operation = operation;
  request->temporary = operation == Operation::kCreate && (copy.flags & kRequestTemporary) != 0;
  std::copy(std::begin(copy.part_bytes), std::end(copy.part_bytes), request->part_bytes);
  request->pipeline.assign(copy.pipeline, copy.pipeline_bytes);
  request->world_hosts = copy.world_hosts;
  request->world_host = copy.world_host;
  request->fewest_hosts = copy.fewest_hosts;
  if (operation != Operation::kAttach) return ParseState::kRequest;
  if (Status status = ParseConsumer(copy, request); !status.ok()) {
    *error = std::move(status);
    return ParseState::kRefused;
  }
  return ParseState::kRequest;
}

Status SendReply(int socket, const Status& status, const ConsumerHandle* handle) {
  if (!status.ok()) return Send(socket, status, 0, 0, {});
  const int fds[kMaxAttachDescriptors] = {handle->segment_fd, handle->control_fd, handle->bell_fd,
                                          handle->device_fd, handle->device_memory_fd};
  size_t count = kAttachDescriptors;
  while (count < kMaxAttachDescriptors && fds[count] >= 0) ++count;
  return Send(socket, status, handle->id, handle->start_step, std::span(fds, count));
}

Status SendAnswer(int socket, const Status& status, int answer_fd) {
  if (!status.ok() || answer_fd < 0) return Send(socket, status, 0, 0, {});
  return Send(socket, status, 0, 0, std::span(&answer_fd, 1));
}

AttachRequest EncodeRequest(std::string_view pipeline, std::string_view group) {
  ConsumerSpec consumer;
  consumer.group = group;
  return EncodeRequest(pipeline, consumer, {});
}

AttachRequest EncodeRequest(std::string_view pipeline, const ConsumerSpec& consumer,
                            const ConsumerPosition& position) {
  AttachRequest request = {};
  request.magic = kRequestMagic;
  request.abi_version = kAbiVersion;
  request.request_bytes = sizeof request;
  request.operation = static_cast<uint32_t>(Operation::kAttach);
  request.flags = (consumer.take_over ? kRequestTakeOver : 0) |
                  (consumer.at_most_once ? kRequestAtMostOnce : 0) |
                  (consumer.on_device ? kRequestOnDevice : 0);
  CopyText(pipeline, request.pipeline, sizeof request.pipeline, &request.pipeline_bytes);
  CopyText(consumer.group, request.group, sizeof request.group, &request.group_bytes);
  request.mode = static_cast<uint32_t>(consumer.mode);
  request.rank = consumer.rank;
  request.world_size = consumer.world_size;
  request.replica = consumer.replica;
  request.replicas = consumer.replicas;
  request.slow = static_cast<uint32_t>(consumer.slow);
  request.lag_ms = consumer.lag_ms;
  request.identity = consumer.identity;
  CopyText(consumer.name, request.name, sizeof request.name, &request.name_bytes);
  request.step = position.step;
  CopyText(position.cursor, reinterpret_cast<char*>(request.cursor), sizeof request.cursor,
           &request.cursor_bytes);
  const auto copy_leases = [](const std::vector<uint64_t>& leases, uint64_t* to, uint32_t* count) {
    *count = static_cast<uint32_t>(std::min(leases.size(), kMaxReportedLeases));
    std::copy_n(leases.begin(), *count, to);
  };
  copy_leases(position.held, request.held, &request.num_held);
  copy_leases(position.returned, request.returned, &request.num_returned);
  return request;
}

Status ConnectToDaemon(const std::string& socket_path, uint64_t timeout_ns, int* socket,
                       const std::function<bool()>& is_cancelled) {
  Descriptor made;
  Status status = Connect(socket_path, timeout_ns, &made, is_cancelled);
  if (status.ok()) *socket = made.Release();
  return status;
}

Status Attach(const std::string& socket_path, std::string_view pipeline, std::string_view group,
              uint64_t timeout_ns, Attachment* out) {
  if (pipeline.empty() || pipeline.size() > kMaxNameBytes || group.size() > kMaxGroupBytes) {
    return {Code::kInvalidArgument,
            "a pipeline's name has 1 to 128 bytes and a group's at most 64: " +
                std::to_string(pipeline.size()) + " and " + std::to_string(group.size())};
  }
  return Attach(socket_path, EncodeRequest(pipeline, group), timeout_ns, out);
}

Status Attach(const std::string& socket_path, const AttachRequest& request, uint64_t timeout_ns,
              Attachment* out, const std::function<bool()>& is_cancelled) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ns;
  int started = -1;
  if (Status status = StartAttach(socket_path, request, timeout_ns, &started, is_cancelled);
      !status.ok()) {
    return status;
  }
  Descriptor socket(started);
  bool done = false;
  while (true) {
    const uint64_t now_ns = MonotonicNs();
    const uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
    const uint64_t wait_ns = is_cancelled != nullptr ? std::min(left_ns, kCancelNs) : left_ns;
    if (Status status = FinishAttach(socket_path, started, wait_ns, out, &done); !status.ok()) {
      return status;
    }
    if (done) break;
    if (is_cancelled != nullptr && is_cancelled()) return GaveUp(socket_path);
    if (wait_ns == left_ns) return NoAnswer(socket_path, timeout_ns);
  }
  socket.Release();
  return {};
}

Status StartAttach(const std::string& socket_path, const AttachRequest& request,
                   uint64_t timeout_ns, int* socket, const std::function<bool()>& is_cancelled) {
  Descriptor made;
  if (Status status = Connect(socket_path, timeout_ns, &made, is_cancelled); !status.ok()) {
    return status;
  }
  // A fresh socket's buffer holds the request.
  if (send(made.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
    const int error = errno;
    // Who is refused at the door may be hung up on before the request is sent: the answer is there.
    uint8_t byte;
    if ((error != EPIPE && error != ECONNRESET) ||
        recv(made.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1) {
      return ConnectError(socket_path, error);
    }
  }
  *socket = made.Release();
  return {};
}

Status FinishAttach(const std::string& socket_path, int socket, uint64_t timeout_ns,
                    Attachment* out, bool* done) {
  if (Status status = WaitForReply(socket, socket_path, MonotonicNs() + timeout_ns, done);
      !status.ok() || !*done) {
    return status;
  }
  AttachReply reply = {};
  Descriptor descriptors[kMaxAttachDescriptors];
  if (Status status = ReadReply(socket, socket_path, &reply, descriptors); !status.ok()) {
    return status;
  }
  if (reply.code != 0) {
    Status status = {
        static_cast<Code>(reply.code),
        std::string(reply.message, std::min(reply.message_bytes, kMaxReplyMessageBytes))};
    if (status.code == Code::kNotFound) {
      status.message += "; see what runs: penstock --socket " + socket_path + " list";
    }
    return status;
  }
  if (reply.abi_version != kAbiVersion) return VersionMismatch(kAbiVersion, reply.abi_version);
  for (const Descriptor& descriptor : std::span(descriptors, kAttachDescriptors)) {
    if (!descriptor) {
      return {Code::kInternal, "penstockd at " + socket_path + " sent no descriptors"};
    }
  }
  out->socket = socket;
  out->segment_fd = descriptors[0].Release();
  out->control_fd = descriptors[1].Release();
  out->bell_fd = descriptors[2].Release();
  out->device_fd = descriptors[3].Release();
  out->device_memory_fd = descriptors[4].Release();
  out->consumer = reply.consumer;
  out->start_step = reply.start_step;
  return {};
}

}  // namespace penstock::ring
