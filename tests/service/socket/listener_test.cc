#include "server/service/socket/listener.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "server/service/daemon/daemon_config.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

ring::Descriptor Socket() {
  return ring::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// All descriptors that this process may have, but for those that are given back.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken_.emplace_back(fd);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

  void GiveBack(int count) {
    for (; count > 0; --count) taken_.pop_back();
  }

 private:
  rlimit before_;
  std::vector<ring::Descriptor> taken_;
};

TEST_CASE("fault 60: a spare descriptor that was lost is taken again before anybody is let in") {
  const test::ScratchFolder folder;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = folder / "socket";
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const ring::Descriptor listening = Socket();
  REQUIRE(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listening.get(), 16) == 0);
  std::vector<ring::Descriptor> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Socket());
    REQUIRE(connect(clients.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address) ==
            0);
  }
  const auto config = ParseDaemonConfig("", "c");
  REQUIRE(config.ok());
  const Settings settings(*config);
  Access access(settings);
  auto loop = EventLoop::Create();
  REQUIRE(loop.ok());
  std::vector<Visitor> visitors;
  {
    NoDescriptors none;
    const auto listener = Listener::Create(**loop, listening.get(), access, [&](Visitor visitor) {
      visitors.push_back(std::move(visitor));
    });
    REQUIRE(listener.ok());
    // One for the spare, and one for a visitor.
    none.GiveBack(2);
    (*loop)->StartTimer(absl::Milliseconds(500), [&] { (*loop)->Stop(); });
    (*loop)->Run();
  }
  CHECK(visitors.size() == 1);
  char byte;
  CHECK(recv(clients[0].get(), &byte, 1, 0) == -1);
  // These are hung up on, rather than left waiting.
  CHECK(recv(clients[1].get(), &byte, 1, 0) == 0);
  CHECK(recv(clients[2].get(), &byte, 1, 0) == 0);
}

}  // namespace
}  // namespace penstock
