// Whether a daemon that gives no sign is told from one that is at work.
#include "client/ctl/daemon/signs_of_life.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/no_more_threads.h"
#include "tests/support/scratch_folder.h"

namespace penstock::ctl {
namespace {

// Somebody who takes connections, and says nothing.
class Silence {
 public:
  explicit Silence(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(listen(fd_, 8) == 0);
  }
  ~Silence() { close(fd_); }

 private:
  const int fd_;
};

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& path) {
  return grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials());
}

TEST_CASE("a daemon that answers no question for so long is missing, and the call is ended") {
  const test::ScratchFolder folder;
  const Silence silence(folder / "socket");
  grpc::ClientContext call;
  SignsOfLife signs(ChannelTo(folder / "socket"), &call, 20'000'000);
  REQUIRE(signs.status().ok());
  while (!signs.missing()) std::this_thread::yield();
}

TEST_CASE("a call that has ended waits for no question") {
  const test::ScratchFolder folder;
  const Silence silence(folder / "socket");
  grpc::ClientContext call;
  // A question would be waited for longer than anybody's patience lasts.
  SignsOfLife signs(ChannelTo(folder / "socket"), &call, uint64_t{1} << 60);
  CHECK(signs.status().ok());
  CHECK(!signs.missing());
}

TEST_CASE("where the system gives no thread nobody asks, and that is told") {
  const test::ScratchFolder folder;
  const Silence silence(folder / "socket");
  grpc::ClientContext call;
  const std::shared_ptr<grpc::Channel> channel = ChannelTo(folder / "socket");
  const test::NoMoreThreads none;
  const SignsOfLife signs(channel, &call, 20'000'000);
  CHECK(absl::IsResourceExhausted(signs.status()));
  CHECK(!signs.missing());
}

}  // namespace
}  // namespace penstock::ctl
