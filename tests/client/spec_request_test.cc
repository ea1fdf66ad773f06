// Requests about specs at daemons that take their time, and at those that stand still.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "client/c/penstock.h"
#include "ring/attach.h"
#include "ring/descriptor.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

class AnswerSeconds {
 public:
  explicit AnswerSeconds(const char* text) { setenv("PENSTOCK_ANSWER_SECONDS", text, 1); }
  ~AnswerSeconds() { unsetenv("PENSTOCK_ANSWER_SECONDS"); }
};

ring::Descriptor Listen(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  ring::Descriptor listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listening.get(), 8) == 0);
  return listening;
}

// Takes a request of any operation from a new connection.
ring::Descriptor TakeOne(int listening, ring::Operation* operation) {
  ring::Descriptor taken(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
  ring::AttachRequest request = {};
  if (recv(taken.get(), &request, sizeof request, MSG_WAITALL) == sizeof request)
    *operation = static_cast<ring::Operation>(request.operation);
  return taken;
}

TEST_CASE("a daemon that works is waited for longer than it may give no sign of life") {
  const test::ScratchFolder folder;
  const std::string path = folder / "socket";
  const ring::Descriptor listening = Listen(path);
  // A third as many questions would do for the time in which it may be silent.
  constexpr int kQuestions = 12;
  std::thread daemon([&listening] {
    ring::Operation operation = ring::Operation::kAttach;
    const ring::Descriptor asked = TakeOne(listening.get(), &operation);
    if (operation != ring::Operation::kCreate) return;
    for (int i = 0; i < kQuestions; ++i) {
      const ring::Descriptor question = TakeOne(listening.get(), &operation);
      if (operation != ring::Operation::kProbe) return;
      ring::SendAnswer(question.get(), {}, -1);
    }
    ring::SendAnswer(asked.get(), {ring::Code::kAlreadyExists, "made at last"}, -1);
  });
  const AnswerSeconds seconds("0.4");
  CHECK(penstock_create(path.c_str(), nullptr, "stage {}", nullptr) == PENSTOCK_ALREADY_EXISTS);
  CHECK(std::string(penstock_last_error()) == "made at last");
  daemon.join();
}

TEST_CASE("fault 48: a daemon that stands still is not waited for") {
  const test::ScratchFolder folder;
  const std::string path = folder / "socket";
  const ring::Descriptor listening = Listen(path);
  const AnswerSeconds seconds("0.2");
  const auto silent = [](int code) {
    CHECK(code == PENSTOCK_UNAVAILABLE);
    CHECK_THAT(penstock_last_error(), Catch::Contains("gave no sign of life in 200 ms"));
  };
  silent(penstock_create(path.c_str(), nullptr, "stage {}", nullptr));
  silent(penstock_validate(path.c_str(), "stage {}", nullptr));
  silent(penstock_delete(path.c_str(), "chess"));
}

TEST_CASE("how long a daemon may be silent is a number of seconds") {
  for (const char* text : {"soon", "0", "-1", "nan", "1e9", "1s"}) {
    const AnswerSeconds seconds(text);
    CHECK(penstock_delete("/nowhere", "chess") == PENSTOCK_INVALID_ARGUMENT);
    CHECK_THAT(penstock_last_error(), Catch::Contains("PENSTOCK_ANSWER_SECONDS"));
  }
}

}  // namespace
}  // namespace penstock
