// Who attaches to a daemon that nothing listens for.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "ring/attach.h"
#include "ring/reader.h"
#include "server/service/attach/sessions.h"
#include "server/service/socket/event_loop.h"
#include "tests/support/catch.h"

namespace penstock::test {

// A trainer's end of a connection.
class Trainer {
 public:
  static constexpr uint64_t kHangsNs = 60'000'000'000;  // turns a hang into a failure

  Trainer(Sessions& sessions, uint64_t identity, const ring::ConsumerPosition& position = {},
          const std::string& pipeline = "counter",
          ring::GroupMode mode = ring::GroupMode::kBroadcast) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    socket_ = ring::Descriptor(ends[0]);
    Visitor visitor;
    visitor.socket = ring::Descriptor(ends[1]);
    visitor.pid = getpid();
    visitor.who.uid = getuid();
    ring::ParsedRequest request;
    request.pipeline = pipeline;
    request.consumer.group = "default";
    request.consumer.identity = identity;
    request.consumer.mode = mode;
    request.position = position;
    sessions.Attach(std::move(visitor), request, /*may_send_away=*/true);
  }

  // Waits for the answer, which must let it in.
  ring::Reader& Enter() {
    ring::Attachment attachment;
    bool done = false;
    const ring::Status status = ring::FinishAttach("", socket_.get(), kHangsNs, &attachment, &done);
    INFO(status.message);
    REQUIRE(status.ok());
    REQUIRE(done);
    socket_.Release();
    REQUIRE(ring::Reader::Open(attachment, &reader_).ok());
    return *reader_;
  }
  // Waits for the answer, which must not.
  ring::Status GetRefused() {
    ring::Attachment attachment;
    bool done = false;
    return ring::FinishAttach("", socket_.get(), kHangsNs, &attachment, &done);
  }
  void Die() { reader_.reset(); }
  void TakeStep() {
    ring::Lease lease;
    const ring::Reader::Result result = reader_->Next(kHangsNs, &lease);
    INFO(reader_->error().message);
    REQUIRE(result == ring::Reader::Result::kBatch);
    reader_->Release(lease);
  }

 private:
  ring::Descriptor socket_;
  std::unique_ptr<ring::Reader> reader_;
};

// Runs a loop on a thread of its own until it goes.
class Running {
 public:
  explicit Running(EventLoop& loop) : loop_(loop), thread_([&loop] { loop.Run(); }) {}
  ~Running() {
    loop_.Stop();
    thread_.join();
  }

 private:
  EventLoop& loop_;
  std::thread thread_;
};

}  // namespace penstock::test
