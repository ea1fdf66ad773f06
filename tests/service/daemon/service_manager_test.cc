#include "server/service/daemon/service_manager.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

TEST_CASE("messages go to the socket that NOTIFY_SOCKET names, by path or abstract") {
  const test::ScratchFolder folder;
  for (const std::string& name : {folder / "notify", absl::StrCat("@penstock-test-", getpid())}) {
    CAPTURE(name);
    const ring::Descriptor server(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    REQUIRE(bind(server.get(), reinterpret_cast<sockaddr*>(&address),
                 offsetof(sockaddr_un, sun_path) + name.size()) == 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    const auto manager = ServiceManager::Create();
    REQUIRE(manager.ok());
    CHECK(getenv("NOTIFY_SOCKET") == nullptr);
    manager->Tell("READY=1");
    char text[64] = {};
    REQUIRE(recv(server.get(), text, sizeof(text), MSG_DONTWAIT) == 7);
    CHECK(std::string(text) == "READY=1");
  }
}

TEST_CASE("signs of life need no descriptor where there are no more") {
  const test::ScratchFolder folder;
  const std::string name = folder / "notify";
  const ring::Descriptor server(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  REQUIRE(bind(server.get(), reinterpret_cast<sockaddr*>(&address),
               offsetof(sockaddr_un, sun_path) + name.size()) == 0);
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  const auto manager = ServiceManager::Create();
  REQUIRE(manager.ok());
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  manager->Tell("WATCHDOG=1");
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  char text[64] = {};
  REQUIRE(recv(server.get(), text, sizeof(text), MSG_DONTWAIT) == 10);
  CHECK(std::string(text) == "WATCHDOG=1");
}

TEST_CASE("without a service manager nothing happens") {
  const auto manager = ServiceManager::Create();
  REQUIRE(manager.ok());
  CHECK(manager->watchdog() == absl::ZeroDuration());
  manager->Tell("READY=1");
}

TEST_CASE("the watchdog's time is taken if it is meant for this process") {
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  CHECK(ServiceManager::Create()->watchdog() == absl::Seconds(3));
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  CHECK(ServiceManager::Create()->watchdog() == absl::ZeroDuration());
}

TEST_CASE("a socket meant for another process is left alone, and more than one is refused") {
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", "1", 1);
  auto manager = ServiceManager::Create();
  REQUIRE(manager.ok());
  CHECK_FALSE(manager->TakeSocket());
  setenv("LISTEN_FDS", "2", 1);
  setenv("LISTEN_PID", absl::StrCat(getpid()).c_str(), 1);
  CHECK(ServiceManager::Create().status().code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock
