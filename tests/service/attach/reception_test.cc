// Who is shown out for whom before anybody knows what they want, and what comes with a request.

#include "server/service/attach/reception.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

// A reception, and what it did with whom.
struct Received {
  Received()
      : reception(*loop, [] { return absl::Hours(1); },
                  {.control = [this](Visitor) { ++controls; },
                   .attach = [this](Visitor, const ring::ParsedRequest&) { ++attaches; },
                   .spec = [this](Visitor, const ring::ParsedRequest&,
                                  ring::Descriptor sent) { file = std::move(sent); },
                   .no_place = [this] { ++no_places; }}) {}

  // Somebody of this user; the other end.
  ring::Descriptor Comes(uid_t user) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    Visitor visitor;
    visitor.socket = ring::Descriptor(ends[1]);
    visitor.who.uid = user;
    reception.Welcome(std::move(visitor));
    return ring::Descriptor(ends[0]);
  }
  // Lets it hear what was said.
  void Listen() {
    loop->StartTimer(absl::Milliseconds(20), [this] { loop->Stop(); });
    loop->Run();
  }

  const std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  int controls = 0, attaches = 0, no_places = 0;
  ring::Descriptor file;
  Reception reception;
};

bool IsShownOut(const ring::Descriptor& visitor) {
  char byte;
  return recv(visitor.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST_CASE("fault 57: whoever has most makes room for others, and each for himself") {
  Received received;
  constexpr uid_t kMany = 1, kFew = 2;
  const ring::Descriptor first_of_few = received.Comes(kFew);
  std::vector<ring::Descriptor> many;
  while (received.reception.waiting() < Reception::kMaxWaiting)
    many.push_back(received.Comes(kMany));
  CHECK(received.no_places == 0);
  const ring::Descriptor second_of_few = received.Comes(kFew);
  CHECK(IsShownOut(many[0]));
  CHECK(received.no_places == 1);
  // Who has most has one more, and no two: the next one of his takes the place of his own.
  many.push_back(received.Comes(kMany));
  CHECK(IsShownOut(many[1]));
  CHECK_FALSE(IsShownOut(many[2]));
  CHECK_FALSE(IsShownOut(first_of_few));
  CHECK_FALSE(IsShownOut(second_of_few));
  CHECK(received.no_places == 2);
  CHECK(received.reception.waiting() == Reception::kMaxWaiting);
}

TEST_CASE("who is refused at once hears why, and a plain end behind it") {
  Received received;
  const ring::Descriptor visitor = received.Comes(1);
  ring::AttachRequest request = ring::EncodeRequest("p", "g");
  request.abi_version += 1;
  REQUIRE(send(visitor.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request);
  received.Listen();
  ring::AttachReply reply;
  REQUIRE(recv(visitor.get(), &reply, sizeof reply, MSG_DONTWAIT) == sizeof reply);
  CHECK(reply.code != 0);
  CHECK(reply.message_bytes > 0);
  // No reset.
  CHECK(IsShownOut(visitor));
  CHECK(received.attaches == 0);
  CHECK(received.reception.waiting() == 0);
}

TEST_CASE("of several files that come with a request the first one counts") {
  Received received;
  const ring::Descriptor visitor = received.Comes(1);
  int first[2], second[2];
  REQUIRE(pipe(first) == 0);
  REQUIRE(pipe(second) == 0);
  const std::array<ring::Descriptor, 4> ends = {
      ring::Descriptor(first[0]), ring::Descriptor(first[1]), ring::Descriptor(second[0]),
      ring::Descriptor(second[1])};
  ring::AttachRequest request = ring::EncodeRequest("p", "");
  request.operation = static_cast<uint32_t>(ring::Operation::kValidate);
  iovec part = {&request, sizeof request};
  const int sent[2] = {first[0], second[0]};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof sent)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof sent);
  std::memcpy(CMSG_DATA(head), sent, sizeof sent);
  REQUIRE(sendmsg(visitor.get(), &message, MSG_NOSIGNAL) == sizeof request);
  received.Listen();
  REQUIRE(received.file);
  struct stat got, expected;
  REQUIRE(fstat(received.file.get(), &got) == 0);
  REQUIRE(fstat(first[0], &expected) == 0);
  CHECK(got.st_ino == expected.st_ino);
}

TEST_CASE("a visitor who hangs up behind half of something is shown out at once") {
  Received received;
  const ring::AttachRequest request = ring::EncodeRequest("p", "g");
  const std::string whole(reinterpret_cast<const char*>(&request), sizeof request);
  for (const std::string& words : {std::string("PRI * HT"), whole.substr(0, 200)}) {
    {
      const ring::Descriptor visitor = received.Comes(1);
      REQUIRE(send(visitor.get(), words.data(), words.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(words.size()));
      received.Listen();
      CHECK(received.reception.waiting() == 1);
    }
    received.Listen();
    CHECK(received.reception.waiting() == 0);
  }
}

}  // namespace
}  // namespace penstock
