// The accept loop and the sessions, with good and bad company.

#include "server/service/daemon/daemon.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <iterator>
#include <list>

#include "tests/service/test_daemon.h"

namespace penstock {
namespace {

using test::TestDaemon;

constexpr uint64_t kForever = UINT64_MAX;

// All values of the tensor `n` until the stream ends.
std::vector<int64_t> ReadAll(ring::Reader& reader, ring::Reader::Result* last) {
  std::vector<int64_t> values;
  ring::Lease lease;
  while ((*last = reader.Next(kForever, &lease)) == ring::Reader::Result::kBatch) {
    const auto* n = reinterpret_cast<const int64_t*>(lease.data + reader.tensors()[0].offset);
    values.insert(values.end(), n, n + lease.rows);
    reader.Release(lease);
  }
  return values;
}

bool HangsUp(int fd) {
  pollfd entry = {fd, POLLRDHUP, 0};
  return poll(&entry, 1, 20'000) == 1 && (entry.revents & (POLLRDHUP | POLLHUP)) != 0;
}

void CheckServes(const TestDaemon& daemon) {
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  CHECK(reader->position() == 0);
}

TEST_CASE("a consumer attaches and reads the stream to its end") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 42).ok());
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  ring::Reader::Result last;
  const std::vector<int64_t> values = ReadAll(*reader, &last);
  CHECK(last == ring::Reader::Result::kEnd);
  REQUIRE(values.size() == 42);
  for (int64_t i = 0; i < 42; ++i) CHECK(values[i] == i);
}

TEST_CASE("the socket's mode is 0660 and its directory's 0750") {
  TestDaemon daemon;
  struct stat info;
  REQUIRE(stat(daemon.socket().c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0660);
  REQUIRE(stat((daemon.folder() / "run").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0750);
}

TEST_CASE("a stopped daemon leaves nothing behind") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 42, "stage { repeat {} }").ok());
  CHECK(daemon.Stop().ok());
  struct stat info;
  CHECK(stat((daemon.folder() / "run").c_str(), &info) != 0);
}

TEST_CASE("fault 57: visitors who say nothing, half of something or nonsense keep nobody waiting") {
  v1::DaemonConfig config;
  config.mutable_connection_limits()->set_first_bytes_timeout_ms(200);
  TestDaemon daemon(config);
  REQUIRE(daemon.CreateCounter("counter", 42).ok());

  const ring::AttachRequest request = ring::EncodeRequest("counter", "default");
  const std::string whole(reinterpret_cast<const char*>(&request), sizeof request);
  const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::list<ring::Descriptor> visitors;
  for (const std::string& words :
       {std::string(), std::string("P"), kPreface.substr(0, 20), whole.substr(0, 8),
        whole.substr(0, 255), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(300, '\0'),
        std::string("PNSTKATX")}) {
    visitors.emplace_back(daemon.Connect());
    if (!words.empty()) {
      REQUIRE(send(visitors.back().get(), words.data(), words.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(words.size()));
    }
    CheckServes(daemon);
  }
  // Each of them is shown out, and the daemon is as before.
  for (const ring::Descriptor& visitor : visitors) CHECK(HangsUp(visitor.get()));
  CheckServes(daemon);
}

TEST_CASE("a request that comes in pieces is a request") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 42).ok());
  const ring::AttachRequest request = ring::EncodeRequest("nothing", "default");
  const auto* bytes = reinterpret_cast<const uint8_t*>(&request);
  const ring::Descriptor visitor(daemon.Connect());
  for (size_t i = 0; i < sizeof request; i += 32) {
    REQUIRE(send(visitor.get(), bytes + i, 32, MSG_NOSIGNAL) == 32);
    CheckServes(daemon);  // the daemon has seen the piece before it answers this
  }
  ring::AttachReply reply;
  pollfd entry = {visitor.get(), POLLIN, 0};
  REQUIRE(poll(&entry, 1, 20'000) == 1);
  REQUIRE(recv(visitor.get(), &reply, sizeof reply, 0) == sizeof reply);
  CHECK(reply.code == static_cast<int32_t>(ring::Code::kNotFound));
  CHECK(std::string(reply.message, reply.message_bytes) ==
        "no pipeline \"nothing\"; there are counter");
}

TEST_CASE("fault 57: more silent visitors than the waiting room holds do not lock out the next") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 42).ok());
  std::list<ring::Descriptor> visitors;
  for (int i = 0; i < 200; ++i) visitors.emplace_back(daemon.Connect());
  CheckServes(daemon);
  CHECK(HangsUp(visitors.front().get()));  // the oldest made room
}

TEST_CASE("a visitor who hangs up behind half of something has gone at once") {
  v1::DaemonConfig config;
  config.mutable_connection_limits()->set_first_bytes_timeout_ms(60'000);
  TestDaemon daemon(config);
  REQUIRE(daemon.CreateCounter("counter", 42).ok());
  CheckServes(daemon);
  const ring::AttachRequest request = ring::EncodeRequest("counter", "default");
  const std::string whole(reinterpret_cast<const char*>(&request), sizeof request);
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  for (int i = 0; i < 100; ++i) {
    const ring::Descriptor visitor(daemon.Connect());
    const std::string words = i % 2 == 0 ? "PRI * HT" : whole.substr(0, 200);
    REQUIRE(send(visitor.get(), words.data(), words.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(words.size()));
  }
  // Who is served has come behind all of them.
  CheckServes(daemon);
  auto after = descriptors();
  for (int i = 0; i < 1000 && after > before + 20; ++i) {
    CheckServes(daemon);
    after = descriptors();
  }
  CHECK(after <= before + 20);
}

TEST_CASE("control connections have a limit, and one that closes makes room") {
  v1::DaemonConfig config;
  config.mutable_connection_limits()->set_max_control_connections(1);
  TestDaemon daemon(config);
  v1::ListPipelinesResponse response;
  {
    const auto first = daemon.Stub();
    grpc::ClientContext context, other_context;
    REQUIRE(first->ListPipelines(&context, {}, &response).ok());
    CHECK(daemon.Stub()->ListPipelines(&other_context, {}, &response).error_code() ==
          grpc::StatusCode::UNAVAILABLE);
  }
  // The daemon notices the first one's end in its own time.
  bool admitted = false;
  for (int i = 0; i < 1000 && !admitted; ++i) {
    grpc::ClientContext context;
    admitted = daemon.Stub()->ListPipelines(&context, {}, &response).ok();
  }
  CHECK(admitted);
}

TEST_CASE("consumers have a limit") {
  v1::DaemonConfig config;
  config.mutable_connection_limits()->set_max_consumers(1);
  TestDaemon daemon(config);
  REQUIRE(daemon.CreateCounter("counter", 42).ok());
  std::unique_ptr<ring::Reader> first, second;
  REQUIRE(daemon.Attach("counter", &first).ok());
  const ring::Status refused = daemon.Attach("counter", &second);
  CHECK(refused.code == ring::Code::kResourceExhausted);
  CHECK(refused.message == "too many consumers: connection_limits.max_consumers is 1");
}

TEST_CASE("the consumers of a deleted pipeline get NOT_FOUND after the batches that were ready") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 42, "stage { repeat {} }").ok());
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  ring::Lease lease;
  REQUIRE(reader->Next(kForever, &lease) == ring::Reader::Result::kBatch);
  grpc::ClientContext context;
  v1::DeletePipelineRequest request;
  v1::DeletePipelineResponse response;
  request.set_name("counter");
  REQUIRE(daemon.Stub()->DeletePipeline(&context, request, &response).ok());
  ring::Reader::Result last;
  ReadAll(*reader, &last);
  CHECK(last == ring::Reader::Result::kFailed);
  CHECK(reader->error().code == ring::Code::kNotFound);
  CHECK(reader->error().message.find("pipeline counter was deleted") != std::string::npos);
  // The lease is still readable.
  CHECK(*reinterpret_cast<const int64_t*>(lease.data + reader->tensors()[0].offset) == 0);
}

TEST_CASE("the consumers of a stopped daemon get UNAVAILABLE") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 42, "stage { repeat {} }").ok());
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  CHECK(daemon.Stop().ok());
  ring::Reader::Result last;
  ReadAll(*reader, &last);
  CHECK(last == ring::Reader::Result::kAgain);
  CHECK(reader->error().code == ring::Code::kUnavailable);
}

TEST_CASE("one pipeline fails and the other does not notice") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 42).ok());
  test::WriteFile(daemon.folder() / "garbage.tfrecord", std::string(100, 'x'));
  v1::CreatePipelineRequest request;
  request.mutable_source()->mutable_text()->set_text(TestDaemon::CounterSpec("garbage"));
  request.mutable_source()->set_base_directory(daemon.folder().path());
  v1::CreatePipelineResponse created;
  grpc::ClientContext create_context;
  REQUIRE(daemon.Stub()->CreatePipeline(&create_context, request, &created).ok());

  std::unique_ptr<ring::Reader> bad, good;
  REQUIRE(daemon.Attach("garbage", &bad).ok());
  ring::Reader::Result last;
  CHECK(ReadAll(*bad, &last).empty());
  CHECK(last == ring::Reader::Result::kFailed);
  CHECK(bad->error().code == ring::Code::kDataLoss);
  CHECK(bad->error().message.find("garbage.tfrecord") != std::string::npos);
  // Later consumers get the same.
  std::unique_ptr<ring::Reader> late;
  REQUIRE(daemon.Attach("garbage", &late).ok());
  ReadAll(*late, &last);
  CHECK(late->error().message == bad->error().message);

  REQUIRE(daemon.Attach("counter", &good).ok());
  CHECK(ReadAll(*good, &last).size() == 42);
  CHECK(last == ring::Reader::Result::kEnd);

  grpc::ClientContext context;
  v1::ListPipelinesResponse list;
  REQUIRE(daemon.Stub()->ListPipelines(&context, {}, &list).ok());
  REQUIRE(list.pipelines_size() == 2);
  CHECK(list.pipelines(1).state() == v1::PIPELINE_STATE_FAILED);
  CHECK(list.pipelines(1).error().message() == bad->error().message);
}

}  // namespace
}  // namespace penstock
