// The attach protocol: what the daemon makes of any bytes, and what a client makes of any answer.
#include "ring/attach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ring/liveness.h"
#include "tests/ring/test_ring.h"
#include "tests/support/attach_server.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

std::vector<uint8_t> BytesOf(const AttachRequest& request) {
  std::vector<uint8_t> bytes(sizeof request);
  std::memcpy(bytes.data(), &request, sizeof request);
  return bytes;
}

struct Parsed {
  ParseState state;
  ParsedRequest request;
  Status error;
};
Parsed Parse(const std::vector<uint8_t>& bytes) {
  Parsed parsed;
  parsed.state = ParseRequest(bytes.data(), bytes.size(), &parsed.request, &parsed.error);
  return parsed;
}

TEST_CASE("a request is understood, and no part of it is") {
  const std::vector<uint8_t> bytes = BytesOf(EncodeRequest("chess", "eval"));
  const Parsed parsed = Parse(bytes);
  REQUIRE(parsed.state == ParseState::kRequest);
  CHECK(parsed.request.pipeline == "chess");
  CHECK(parsed.request.consumer.group == "eval");
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK(Parse({bytes.begin(), bytes.begin() + size}).state == ParseState::kNeedMore);
  }
  CHECK(Parse(BytesOf(EncodeRequest("chess", ""))).request.consumer.group == "default");
  const std::string longest(128, 'p');
  CHECK(Parse(BytesOf(EncodeRequest(longest, ""))).request.pipeline == longest);
}

TEST_CASE("other protocols are refused at their first other byte") {
  for (const std::string text :
       {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n", "PNSTKATX"}) {
    INFO(text);
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    CHECK(Parse(bytes).state == ParseState::kRefused);
  }
  CHECK(Parse({'P', 'R'}).state == ParseState::kRefused);
  CHECK(Parse({'P', 'N'}).state == ParseState::kNeedMore);
}

TEST_CASE("fault 42: another version is refused with both, whatever follows") {
  AttachRequest request = EncodeRequest("chess", "");
  request.abi_version = 77;
  request.request_bytes = 4000;
  std::vector<uint8_t> bytes = BytesOf(request);
  bytes.resize(16);
  const Parsed parsed = Parse(bytes);
  CHECK(parsed.state == ParseState::kRefused);
  CHECK(parsed.error.code == Code::kFailedPrecondition);
  CHECK_THAT(parsed.error.message,
             Catch::Contains("the client 77, the daemon " + std::to_string(kAbiVersion)));
}

TEST_CASE("hostile requests are refused") {
  AttachRequest request = EncodeRequest("chess", "");
  SECTION("empty name") { request.pipeline_bytes = 0; }
  SECTION("long name") { request.pipeline_bytes = 129; }
  SECTION("huge name") { request.pipeline_bytes = UINT32_MAX; }
  SECTION("long group") { request.group_bytes = 65; }
  SECTION("operation") { request.operation = static_cast<uint32_t>(Operation::kOffer) + 1; }
  SECTION("no operation") { request.operation = 0; }
  SECTION("flags") { request.flags = 1; }
  SECTION("flags of a create") {
    request.operation = 2;
    request.flags = 2;
  }
  SECTION("a delete without a name") {
    request.operation = 4;
    request.pipeline_bytes = 0;
  }
  SECTION("a spec beyond the limit") {
    request.operation = 2;
    request.part_bytes[0] = kMaxPartsBytes + 1;
  }
  SECTION("parts whose sum wraps") {
    request.operation = 2;
    request.part_bytes[0] = request.part_bytes[1] = 1u << 31;
  }
  SECTION("size") { request.request_bytes = 255; }
  SECTION("a name of a pipeline that is no text") { request.pipeline[0] = '\xff'; }
  SECTION("a group's") { request.group[request.group_bytes++] = '\n'; }
  SECTION("a consumer's") { request.name[request.name_bytes++] = '\x1b'; }
  CHECK(Parse(BytesOf(request)).state == ParseState::kRefused);
}

TEST_CASE("a request about a spec") {
  AttachRequest request = EncodeRequest("", "");
  request.operation = static_cast<uint32_t>(Operation::kCreate);
  request.flags = kRequestTemporary;
  request.part_bytes[0] = 17;
  request.part_bytes[3] = kMaxPartsBytes - 17;
  const Parsed parsed = Parse(BytesOf(request));
  REQUIRE(parsed.state == ParseState::kRequest);
  CHECK(parsed.request.operation == Operation::kCreate);
  CHECK(parsed.request.temporary);
  CHECK(parsed.request.pipeline.empty());
  CHECK(parsed.request.part_bytes[0] == 17);
  CHECK(parsed.request.part_bytes[3] == kMaxPartsBytes - 17);
}

TEST_CASE("random bytes never get through unless they are a request") {
  std::mt19937_64 dice(20);
  int requests = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = BytesOf(EncodeRequest("chess", "eval"));
    const int changes = static_cast<int>(dice() % 4);
    for (int i = 0; i < changes; ++i) bytes[dice() % 320] = static_cast<uint8_t>(dice());
    if (dice() % 2 == 0) bytes.resize(dice() % bytes.size());
    const Parsed parsed = Parse(bytes);
    if (parsed.state == ParseState::kRequest) {
      ++requests;
      CHECK(parsed.request.pipeline.size() <= 128);
      CHECK(parsed.request.consumer.group.size() <= 64);
    }
  }
  CHECK(requests > 100);
}

// A listening socket whose first connection is handled by a function.
// The thread of a server must not use Catch's macros; these say nothing and let the test find out.
void Send(int connection, const void* bytes, size_t size) {
  if (write(connection, bytes, size) < 0) return;
}
void Receive(int connection) {
  char bytes[sizeof(AttachRequest)];
  if (read(connection, bytes, sizeof bytes) < 0) return;
}

class OneShotServer {
 public:
  explicit OneShotServer(std::function<void(int)> handle) {
    char pattern[] = "/tmp/penstock-attach-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    folder_ = pattern;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    listener_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener_.get(), 1) == 0);
    thread_ = std::thread([this, handle] {
      const Descriptor connection(accept(listener_.get(), nullptr, nullptr));
      handle(connection.get());
    });
  }
  ~OneShotServer() {
    thread_.join();
    unlink(path().c_str());
    rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/socket"; }

 private:
  std::string folder_;
  Descriptor listener_;
  std::thread thread_;
};

Status TryAttach(const std::string& path, uint64_t timeout_ns = 10 * kSecondNs) {
  Attachment attachment;
  return Attach(path, "chess", "", timeout_ns, &attachment);
}

TEST_CASE("a client says what is wrong with an answer") {
  SECTION("another version's daemon, whose words are shown") {
    OneShotServer server([](int connection) {
      AttachReply reply = {};
      reply.magic = kReplyMagic;
      reply.abi_version = 9;
      reply.code = 9;
      const char message[] = "both versions";
      reply.message_bytes = sizeof message - 1;
      std::memcpy(reply.message, message, sizeof message);
      Send(connection, &reply, sizeof reply);
      Receive(connection);
    });
    const Status status = TryAttach(server.path());
    CHECK(status.code == Code::kFailedPrecondition);
    CHECK(status.message == "both versions");
  }
  SECTION("another protocol") {
    OneShotServer server([](int connection) {
      Send(connection, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
      Receive(connection);
    });
    CHECK_THAT(TryAttach(server.path()).message, Catch::Contains("is no penstockd"));
  }
  SECTION("a connection that closes") {
    OneShotServer server([](int connection) { Receive(connection); });
    const Status status = TryAttach(server.path());
    CHECK(status.code == Code::kUnavailable);
    CHECK_THAT(status.message, Catch::Contains("closed the connection without an answer"));
  }
  SECTION("no answer") {
    OneShotServer server([](int connection) {
      char rest[256];
      while (read(connection, rest, sizeof rest) > 0) {
      }
    });
    const Status status = TryAttach(server.path(), 1000);
    CHECK(status.code == Code::kUnavailable);
    CHECK_THAT(status.message, Catch::Contains("did not answer"));
  }
  SECTION("success without descriptors") {
    OneShotServer server([](int connection) {
      AttachReply reply = {};
      reply.magic = kReplyMagic;
      reply.abi_version = kAbiVersion;
      Send(connection, &reply, sizeof reply);
      Receive(connection);
    });
    CHECK(TryAttach(server.path()).code == Code::kInternal);
  }
}

TEST_CASE("a client without room for the ring's descriptors says so, and keeps none") {
  OneShotServer server([](int connection) {
    ConsumerHandle handle;
    handle.segment_fd = handle.control_fd = handle.bell_fd = STDERR_FILENO;
    SendReply(connection, {}, &handle);
    // Until it hangs up, so that nobody else makes room here.
    Receive(connection);
    Receive(connection);
  });
  AttachRequest request = {};
  int socket = -1;
  REQUIRE(StartAttach(server.path(), request, 10 * kSecondNs, &socket).ok());
  const Descriptor owned(socket);
  pollfd answer = {socket, POLLIN, 0};
  REQUIRE(poll(&answer, 1, -1) == 1);
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int first_free = dup(socket);
  REQUIRE(first_free >= 0);
  close(first_free);
  // Room for one of three.
  const rlimit one = {static_cast<rlim_t>(first_free) + 1, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &one) == 0);
  Attachment attachment;
  bool done = false;
  const Status status = FinishAttach(server.path(), socket, 10 * kSecondNs, &attachment, &done);
  const int still_free = dup(socket);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(status.code == Code::kResourceExhausted);
  CHECK_THAT(status.message, Catch::Contains("ulimit -n"));
  CHECK(still_free == first_free);
  close(still_free);
}

TEST_CASE("a client says why it cannot connect") {
  char pattern[] = "/tmp/penstock-attach-XXXXXX";
  REQUIRE(mkdtemp(pattern) != nullptr);
  const std::string path = std::string(pattern) + "/socket";
  SECTION("nothing there") {
    CHECK(TryAttach(path).message == "no penstockd at " + path +
                                         ": there is no such socket; start one: penstockd "
                                         "--socket " +
                                         path);
  }
  SECTION("a socket that nobody listens on") {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    Descriptor gone(socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(bind(gone.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const Status status = TryAttach(path);
    CHECK(status.code == Code::kUnavailable);
    CHECK_THAT(status.message, Catch::Contains("nobody listens on this socket any more"));
    SECTION("and that is not ours to use") {
      if (geteuid() != 0) return;  // only root can become somebody else
      chmod(pattern, 0755);
      chmod(path.c_str(), 0600);
      const pid_t child = fork();
      if (child == 0) {
        if (setuid(65534) != 0) _exit(2);
        const Status refused = TryAttach(path);
        _exit(refused.code == Code::kPermissionDenied &&
                      refused.message.find("you are user 65534, the socket's owner is 0; look at "
                                           "it: ls -l ") != std::string::npos
                  ? 0
                  : 1);
      }
      int state = 0;
      REQUIRE(waitpid(child, &state, 0) == child);
      CHECK(state == 0);
    }
  }
  SECTION("a path that is too long") {
    CHECK(TryAttach("/tmp/" + std::string(200, 'x')).code == Code::kInvalidArgument);
  }
  SECTION("what is no socket") {
    const auto check = [](const std::string& at, const std::string& what) {
      const Status status = TryAttach(at);
      CHECK(status.code == Code::kFailedPrecondition);
      CHECK(status.message == at + " is no penstockd: it is " + what + "; give the right socket");
    };
    check(pattern, "a directory, and no socket");
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    check(path, "a named pipe, and no socket");
    unlink(path.c_str());
    { const Descriptor file(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }
    check(path, "a regular file, and no socket");
    CHECK_THAT(TryAttach(path + "/socket").message,
               Catch::Contains(path + " is a regular file, and no folder; start one: "));
    check("/dev/null", "a device, and no socket");
    unlink(path.c_str());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    const Descriptor packets(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(bind(packets.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    check(path, "a socket of another kind");
  }
  SECTION("links that lead nowhere") {
    REQUIRE(symlink("gone", path.c_str()) == 0);
    const Status status = TryAttach(path);
    CHECK(status.code == Code::kUnavailable);
    CHECK(status.message == "no penstockd at " + path +
                                ": it is a symbolic link to gone, which is not there; start one: "
                                "penstockd --socket " +
                                path);
    unlink(path.c_str());
    REQUIRE(symlink("socket", path.c_str()) == 0);
    CHECK(TryAttach(path).code == Code::kFailedPrecondition);
    CHECK_THAT(TryAttach(path).message, Catch::Contains("lead in a circle"));
  }
  SECTION("a folder that is not there") {
    CHECK_THAT(TryAttach(path + "/s").message, Catch::Contains("there is no such folder; start"));
  }
  SECTION("a folder that nobody else may pass") {
    if (geteuid() != 0) return;  // only root can become somebody else
    chmod(pattern, 0700);
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(65534) != 0) _exit(2);
      const Status refused = TryAttach(path);
      _exit(refused.code == Code::kPermissionDenied &&
                    refused.message == "no permission to reach " + path +
                                           ": you are user 65534, who may not pass one of its "
                                           "folders; look at them: namei -l " +
                                           path
                ? 0
                : 1);
    }
    int state = 0;
    REQUIRE(waitpid(child, &state, 0) == child);
    CHECK(state == 0);
  }
  unlink(path.c_str());
  rmdir(pattern);
}

TEST_CASE("the default socket: PENSTOCK_SOCKET, XDG_RUNTIME_DIR, /run") {
  setenv("PENSTOCK_SOCKET", "/a/b", 1);
  setenv("XDG_RUNTIME_DIR", "/run/user/1", 1);
  CHECK(DefaultSocketPath() == "/a/b");
  setenv("PENSTOCK_SOCKET", "", 1);
  CHECK(DefaultSocketPath() == "/run/user/1/penstock.sock");
  unsetenv("PENSTOCK_SOCKET");
  unsetenv("XDG_RUNTIME_DIR");
  CHECK(DefaultSocketPath() == "/run/penstock/penstock.sock");
}

TEST_CASE("the kernel says who the peer is, and when it has died") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Descriptor ours(ends[0]), theirs(ends[1]);
  Peer peer;
  REQUIRE(CheckPeer(ours.get(), &peer).ok());
  CHECK(peer.pid == getpid());
  CHECK(peer.uid == geteuid());
  const Descriptor pidfd(peer.pidfd);
  REQUIRE(pidfd);
  pollfd entry = {pidfd.get(), POLLIN, 0};
  CHECK(poll(&entry, 1, 0) == 0);
  CHECK_FALSE(CheckPeer(pidfd.get(), &peer).ok());
}

TEST_CASE("an answer that is there counts, although the request could not be sent") {
  const std::string path = "/tmp/penstock-refusing-" + std::to_string(getpid());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  unlink(path.c_str());
  const Descriptor listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listening.get(), 16) == 0);
  constexpr int kRounds = 500;
  std::thread refusing([&] {
    for (int i = 0; i < kRounds; ++i) {
      const Descriptor client(accept(listening.get(), nullptr, nullptr));
      SendReply(client.get(), {Code::kPermissionDenied, "not you"}, nullptr);
    }
  });
  int refused = 0;
  for (int i = 0; i < kRounds; ++i) {
    Attachment attachment;
    const Status status = Attach(path, "chess", "", kSecondNs * 10, &attachment);
    if (status.code == Code::kPermissionDenied && status.message == "not you") ++refused;
  }
  refusing.join();
  unlink(path.c_str());
  CHECK(refused == kRounds);
}

}  // namespace
}  // namespace penstock::ring
