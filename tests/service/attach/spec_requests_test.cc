// Create, validate and delete over the attach protocol.

#include "server/service/attach/spec_requests.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "server/service/socket/access.h"
#include "server/service/socket/settings.h"
#include "tests/service/test_daemon.h"
#include "tests/support/hanging_files.h"

namespace penstock {
namespace {

using ring::Code;
using ring::Operation;
using test::TestDaemon;

struct Reply {
  Code code = Code::kOk;
  std::string message;
  std::string json;
};

ring::AttachRequest Head(Operation operation, const std::string& name,
                         const std::vector<std::string>& parts, uint32_t flags = 0) {
  ring::AttachRequest head = ring::EncodeRequest(name, "");
  head.operation = static_cast<uint32_t>(operation);
  head.flags = flags;
  for (size_t i = 0; i < parts.size(); ++i) head.part_bytes[i] = parts[i].size();
  return head;
}

ring::Descriptor MemoryFile(const std::vector<std::string>& parts) {
  ring::Descriptor file(memfd_create("test", MFD_CLOEXEC));
  for (const std::string& part : parts) {
    REQUIRE(write(file.get(), part.data(), part.size()) == static_cast<ssize_t>(part.size()));
  }
  return file;
}

void Send(int socket, const ring::AttachRequest& head, int fd) {
  ring::AttachRequest copy = head;
  iovec part = {&copy, sizeof copy};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  REQUIRE(sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof copy);
}

Reply Receive(int socket) {
  ring::AttachReply reply = {};
  iovec part = {&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  pollfd entry = {socket, POLLIN, 0};
  REQUIRE(poll(&entry, 1, 20'000) == 1);
  REQUIRE(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == sizeof reply);
  Reply result{static_cast<Code>(reply.code), std::string(reply.message, reply.message_bytes), ""};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  CHECK((header != nullptr) == (reply.descriptors == 1));
  if (header != nullptr) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    const ring::Descriptor file(fd);
    CHECK((fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) != 0);
    result.json.resize(1 << 16);
    const ssize_t size = pread(fd, result.json.data(), result.json.size(), 0);
    REQUIRE(size > 0);
    result.json.resize(size);
  }
  return result;
}

class SpecClient {
 public:
  explicit SpecClient(const TestDaemon& daemon) : daemon_(daemon), socket_(daemon.Connect()) {}

  Reply Ask(Operation operation, const std::string& name, const std::string& text,
            uint32_t flags = 0) {
    const std::vector<std::string> parts = {text, "spec", daemon_.folder().path(), ""};
    Send(socket_.get(), Head(operation, name, parts, flags), MemoryFile(parts).get());
    return Receive(socket_.get());
  }
  int socket() const { return socket_.get(); }

 private:
  const TestDaemon& daemon_;
  const ring::Descriptor socket_;
};

std::string Count(int rows) {
  return "name: 'count' stage { range { stop: " + std::to_string(rows) + " } } stage { repeat {} }";
}

TEST_CASE("a pipeline is created, attached to and deleted without gRPC") {
  TestDaemon daemon;
  const Reply created = SpecClient(daemon).Ask(Operation::kCreate, "mine", Count(7));
  REQUIRE(created.code == Code::kOk);
  CHECK_THAT(created.json, Catch::Contains("\"name\":\"mine\""));
  CHECK_THAT(created.json, Catch::Contains("\"structure\":\"null\""));
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("mine", &reader).ok());
  const Reply twice = SpecClient(daemon).Ask(Operation::kCreate, "mine", Count(7));
  CHECK(twice.code == Code::kAlreadyExists);
  CHECK(twice.json.empty());
  const Reply deleted = SpecClient(daemon).Ask(Operation::kDelete, "mine", "");
  CHECK(deleted.code == Code::kOk);
  CHECK(deleted.json.empty());
  CHECK(SpecClient(daemon).Ask(Operation::kDelete, "mine", "").code == Code::kNotFound);
}

TEST_CASE("validation answers with the element and starts nothing") {
  TestDaemon daemon;
  const Reply checked = SpecClient(daemon).Ask(
      Operation::kValidate, "",
      Count(7) +
          " stage { map { out: \"x = float32(value)\" } } stage { batch { batch_size: 3 } }");
  REQUIRE(checked.code == Code::kOk);
  CHECK_THAT(checked.json, Catch::Contains("\"dtype\":\"DATA_TYPE_FLOAT32\""));
  CHECK_THAT(checked.json, Catch::Contains("\"explanation\":"));
  std::unique_ptr<ring::Reader> reader;
  CHECK(daemon.Attach("count", &reader).code == Code::kNotFound);
}

TEST_CASE("what a pipeline has left out is told without gRPC") {
  TestDaemon daemon;
  const std::string spec =
      "stage { from_tensor_slices { tensor { string_value: ['1', 'x', '3', 'y'] } } } "
      "stage { map { out: \"value = string_to_number(value)\" } } stage { ignore_errors {} } "
      "stage { batch { batch_size: 2 } }";
  REQUIRE(SpecClient(daemon).Ask(Operation::kCreate, "leaves_out", spec).code == Code::kOk);
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("leaves_out", &reader).ok());
  ring::Lease lease;
  while (reader->Next(20'000'000'000, &lease) == ring::Reader::Result::kBatch)
    reader->Release(lease);
  const Reply skipped = SpecClient(daemon).Ask(Operation::kSkipped, "leaves_out", "");
  CHECK(skipped.code == Code::kOk);
  CHECK_THAT(skipped.json,
             Catch::Contains("\"count\":\"2\"") && Catch::Contains("found \\\"x\\\""));
  CHECK(SpecClient(daemon).Ask(Operation::kSkipped, "another", "").code == Code::kNotFound);
  CHECK(SpecClient(daemon).Ask(Operation::kSkipped, "", "").code == Code::kInvalidArgument);
}

TEST_CASE("what a pipeline does is told without gRPC") {
  TestDaemon daemon;
  const std::string spec = Count(1000) + " stage { batch { batch_size: 10 } }";
  REQUIRE(SpecClient(daemon).Ask(Operation::kCreate, "watched", spec).code == Code::kOk);
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("watched", &reader).ok());
  ring::Lease lease;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(reader->Next(20'000'000'000, &lease) == ring::Reader::Result::kBatch);
    reader->Release(lease);
  }
  const Reply stats = SpecClient(daemon).Ask(Operation::kStats, "watched", "");
  REQUIRE(stats.code == Code::kOk);
  v1::PipelineStats told;
  REQUIRE(google::protobuf::util::JsonStringToMessage(stats.json, &told).ok());
  CHECK(told.name() == "watched");
  CHECK(told.steps() >= 3);
  CHECK(told.consumers_size() == 1);
  CHECK(SpecClient(daemon).Ask(Operation::kStats, "another", "").code == Code::kNotFound);
  CHECK(SpecClient(daemon).Ask(Operation::kStats, "", "").code == Code::kInvalidArgument);
}

TEST_CASE("a pipeline is divided among other hosts without gRPC") {
  TestDaemon daemon;
  const auto ask = [&](const std::string& step, uint32_t hosts, uint32_t host) {
    const ring::Descriptor socket(daemon.Connect());
    ring::AttachRequest head = Head(Operation::kRedivide, "divided", {step});
    head.world_hosts = hosts;
    head.world_host = host;
    Send(socket.get(), head, MemoryFile({step}).get());
    return Receive(socket.get());
  };
  CHECK(ask("200", 2, 1).code == Code::kNotFound);
  const std::string spec = Count(1000) + " stage { batch { batch_size: 10 } }";
  REQUIRE(SpecClient(daemon).Ask(Operation::kCreate, "divided", spec).code == Code::kOk);
  const Reply divided = ask("200", 2, 1);
  INFO(divided.message);
  REQUIRE(divided.code == Code::kOk);
  v1::UpdatePipelineResponse told;
  REQUIRE(google::protobuf::util::JsonStringToMessage(divided.json, &told).ok());
  CHECK(told.change().step() == 200);
  CHECK(told.change().world().host() == 1);
  CHECK_THAT(ask("x", 2, 1).message, Catch::Contains("step: expected a number"));
  CHECK(ask("99999999999999999999", 2, 1).code == Code::kInvalidArgument);
  CHECK(ask("300", 11, 1).code == Code::kInvalidArgument);
  CHECK(ask("100", 3, 1).code == Code::kFailedPrecondition);
}

TEST_CASE("the steps of a spec are counted, or it is said why not") {
  TestDaemon daemon;
  const auto ask = [&](const std::string& more) {
    return SpecClient(daemon).Ask(Operation::kCount, "", "stage { range { stop: 7 } }" + more).json;
  };
  CHECK(ask(" stage { batch { batch_size: 3 } }") == "{\"steps\":\"3\"}");
  CHECK_THAT(ask(" stage { repeat {} }"),
             Catch::Contains("\"why_not\"") && Catch::Contains("has no end"));
  CHECK_THAT(ask(" stage { filter { predicate: \"value > 3\" } }"),
             Catch::Contains("only reading tells: the data decides how many elements stage filter "
                             "gives"));
  CHECK_THAT(ask(" stage { filter { predicate: \"value > 3\" } } stage { batch { batch_size: 2 } } "
                 "stage { unbatch {} }"),
             Catch::Contains("how many elements stage filter gives"));
  CHECK(SpecClient(daemon).Ask(Operation::kCount, "", "stage { rangee {} }").code ==
        Code::kInvalidArgument);
}

TEST_CASE("errors of a spec come back as they are for the command line") {
  TestDaemon daemon;
  const Reply unknown = SpecClient(daemon).Ask(Operation::kValidate, "", "stage { rangee {} }");
  CHECK(unknown.code == Code::kInvalidArgument);
  CHECK(unknown.message == "spec:1:16: unknown field \"rangee\" in Stage, did you mean \"range\"?");
}

TEST_CASE("a temporary pipeline ends with its creator's connection") {
  TestDaemon daemon;
  std::unique_ptr<ring::Reader> reader;
  {
    SpecClient client(daemon);
    REQUIRE(client.Ask(Operation::kCreate, "mine", Count(7), ring::kRequestTemporary).code ==
            Code::kOk);
    REQUIRE(daemon.Attach("mine", &reader).ok());
  }
  ring::Lease lease;
  ring::Reader::Result result;
  while ((result = reader->Next(20'000'000'000, &lease)) == ring::Reader::Result::kBatch) {
    reader->Release(lease);
  }
  CHECK(result == ring::Reader::Result::kFailed);
  CHECK(reader->error().code == Code::kNotFound);
}

TEST_CASE("the end of a temporary pipeline's creator takes nothing from another of its name") {
  TestDaemon daemon;
  const auto exists = [&](const std::string& name) {
    v1::GetPipelineRequest request;
    v1::GetPipelineResponse response;
    request.set_name(name);
    grpc::ClientContext context;
    return daemon.Stub()->GetPipeline(&context, request, &response).ok();
  };
  {
    SpecClient creator(daemon), other(daemon);
    REQUIRE(creator.Ask(Operation::kCreate, "p", Count(7), ring::kRequestTemporary).code ==
            Code::kOk);
    REQUIRE(SpecClient(daemon).Ask(Operation::kDelete, "p", "").code == Code::kOk);
    REQUIRE(SpecClient(daemon).Ask(Operation::kCreate, "p", Count(7)).code == Code::kOk);
    REQUIRE(other.Ask(Operation::kCreate, "other", Count(7), ring::kRequestTemporary).code ==
            Code::kOk);
  }
  while (exists("other")) std::this_thread::yield();
  CHECK(exists("p"));
}

TEST_CASE("creators who go before the answer leave nothing behind") {
  TestDaemon daemon;
  const std::vector<std::string> parts = {Count(7), "", "", ""};
  for (int i = 0; i < 50; ++i) {
    const ring::Descriptor socket(daemon.Connect());
    Send(socket.get(),
         Head(Operation::kCreate, "early" + std::to_string(i), parts, ring::kRequestTemporary),
         MemoryFile(parts).get());
  }
  // The last pipeline is gone when its name is free; the ones before it are gone earlier or are
  // being deleted by the other thread.
  for (int i = 0; i < 50; ++i) {
    Reply reply;
    do {
      SpecClient client(daemon);
      reply = client.Ask(Operation::kCreate, "early" + std::to_string(i), Count(7),
                         ring::kRequestTemporary);
    } while (reply.code == Code::kAlreadyExists);
    CHECK(reply.code == Code::kOk);
  }
}

TEST_CASE("hostile memory files are refused, and the daemon goes on") {
  TestDaemon daemon;
  const std::vector<std::string> parts = {Count(7), "", "", ""};
  const ring::AttachRequest head = Head(Operation::kCreate, "mine", parts);
  const ring::Descriptor socket(daemon.Connect());
  SECTION("none") { Send(socket.get(), head, -1); }
  SECTION("too short") { Send(socket.get(), head, MemoryFile({"name"}).get()); }
  SECTION("a pipe that nobody writes to") {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    const ring::Descriptor reading(ends[0]), writing(ends[1]);
    Send(socket.get(), head, reading.get());
    CHECK(Receive(socket.get()).code == Code::kInvalidArgument);
    CHECK(SpecClient(daemon).Ask(Operation::kCreate, "mine", Count(7)).code == Code::kOk);
    return;
  }
  SECTION("only for writing") {
    const ring::Descriptor file = MemoryFile(parts);
    const ring::Descriptor writing(
        open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(writing);
    Send(socket.get(), head, writing.get());
  }
  SECTION("no text") {
    std::vector<std::string> nonsense = {std::string(1000, '\0'), "", "", ""};
    Send(socket.get(), Head(Operation::kCreate, "mine", nonsense), MemoryFile(nonsense).get());
  }
  SECTION("a text beyond the limit") {
    std::vector<std::string> nonsense = {std::string((1 << 20) + 1, ' '), "", "", ""};
    Send(socket.get(), Head(Operation::kCreate, "mine", nonsense), MemoryFile(nonsense).get());
  }
  SECTION("a cursor of nonsense") {
    std::vector<std::string> nonsense = {Count(7), "", "", std::string(5000, 'x')};
    Send(socket.get(), Head(Operation::kCreate, "mine", nonsense), MemoryFile(nonsense).get());
  }
  CHECK(Receive(socket.get()).code == Code::kInvalidArgument);
  CHECK(SpecClient(daemon).Ask(Operation::kCreate, "mine", Count(7)).code == Code::kOk);
}

TEST_CASE("a daemon stops while requests wait") {
  TestDaemon daemon;
  const std::vector<std::string> parts = {Count(7), "", "", ""};
  std::vector<ring::Descriptor> sockets;
  for (int i = 0; i < 20; ++i) {
    sockets.emplace_back(daemon.Connect());
    Send(sockets.back().get(),
         Head(Operation::kCreate, absl::StrCat("p", i), parts, ring::kRequestTemporary),
         MemoryFile(parts).get());
  }
  CHECK(daemon.Stop().ok());
}

TEST_CASE("fault 57: one user's requests over files that hang keep nobody else's waiting") {
  const test::ScratchFolder folder;
  test::HangingFiles files(
      [](const std::string& path, uint64_t) { return absl::EndsWith(path, "hangs"); });
  for (const char* name : {"first-hangs", "second-hangs"}) test::WriteShard(folder / name, 0, 10);
  v1::DaemonConfig config;
  for (const uint32_t user : {1001, 1002}) config.add_allowed_uids(user);
  REQUIRE(CompleteDaemonConfig(&config).ok());
  const Settings settings(config);
  Access access(settings);
  const auto loop = EventLoop::Create();
  REQUIRE(loop.ok());
  PipelineTable table(files, config.worker_defaults());
  SpecRequests specs(**loop, table, access, [](const Pipeline&, const PipelineTable::Visible&) {
    return v1::PipelineStats();
  });
  struct LetGo {
    ~LetGo() { files.LetGo(); }
    test::HangingFiles& files;
  } let_go{files};
  int created = 0;
  const auto ask = [&](uid_t user, const std::string& text) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const std::vector<std::string> parts = {text, "spec", folder.path(), ""};
    ring::ParsedRequest request;
    request.operation = Operation::kCreate;
    request.pipeline = absl::StrCat("pipeline-", ++created);
    for (size_t i = 0; i < parts.size(); ++i)
      request.part_bytes[i] = static_cast<uint32_t>(parts[i].size());
    Visitor visitor;
    visitor.socket = ring::Descriptor(ends[0]);
    visitor.who.uid = user;
    specs.Serve(std::move(visitor), request, MemoryFile(parts));
    return ring::Descriptor(ends[1]);
  };
  const auto hanging = [](const std::string& file) {
    return "name: 'hangs' stage { tfrecord { files: '" + file +
           "' } } stage { shuffle { global: true seed: 1 } } stage { batch { batch_size: 5 } }";
  };
  const ring::Descriptor first = ask(1001, hanging("first-hangs")),
                         second = ask(1001, hanging("second-hangs"));
  while (files.hanging() < 2) std::this_thread::yield();
  const ring::Descriptor third = ask(1001, Count(7)), other = ask(1002, Count(7));
  CHECK(Receive(other.get()).code == Code::kOk);
  files.LetGo();
  for (const ring::Descriptor* own : {&first, &second, &third})
    CHECK(Receive(own->get()).code == Code::kOk);
}

}  // namespace
}  // namespace penstock
