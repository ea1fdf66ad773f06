// The status page and the metrics, for browsers and Prometheus on this machine's loopback:
// connections of one request each, read and written on the event loop, so that a client that says
// nothing, half of something, or takes nothing keeps nobody else waiting.
//
//   asking ──its head is complete──► answering, on a thread ──► telling ──all is sent──► ending, until it hangs up
//
// Threads:  the event loop's; answers are made on kThreads of its own.
// Owns:     its port and the connections. Table, monitor and access must outlive it, and the loop
//           runs nothing more when it goes.
// Limits:   kMaxConnections, then the oldest goes; kMaxHeadBytes of a request; kTimeout for it to
//           be said, and again for its answer to be taken.
// Cost:     nothing without requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ring/descriptor.h"
#include "server/service/http/http_answers.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/access.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/task_pool.h"
#include "server/service/socket/tcp_listener.h"
#include "server/service/tune/monitor.h"

namespace penstock {

class HttpServer {
 public:
  static constexpr int kThreads = 2;
  static constexpr size_t kMaxConnections = 64;
  // A browser sends what all servers of this machine have given it to keep.
  static constexpr size_t kMaxHeadBytes = 32 << 10;
  static constexpr absl::Duration kTimeout = absl::Seconds(5);

  // `port`: of 127.0.0.1. An error when it is taken, or not allowed.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(EventLoop& loop, int port,
                                                            const PipelineTable& table,
                                                            const Monitor& monitor,
                                                            const Access& access);
  ~HttpServer();

 private:
  using Ordinal = uint64_t;  // in the order of arrival
  enum class State : uint8_t { kAsking, kAnswering, kTelling, kEnding };
  struct Connection {
    ring::Descriptor socket;
    EventLoop::Id watch = 0;
    EventLoop::Id timer = 0;
    State state = State::kAsking;
    std::string bytes;  // of the request; from kTelling on of the answer
    size_t done = 0;    // of the answer: sent; when ending: read, and not looked at
  };

  HttpServer(EventLoop& loop, const PipelineTable& table, const Monitor& monitor,
             const Access& access)
      : loop_(loop), answers_(table, monitor, access), pool_(kThreads) {}

  void Welcome(ring::Descriptor socket);
  void GoOn(Ordinal ordinal);
  // Each false when the connection has nothing more to say or to take now.
  bool Listen(Ordinal ordinal, Connection& connection);
  bool Tell(Connection& connection);
  bool End(Ordinal ordinal, Connection& connection);
  void AnswerLater(Ordinal ordinal, std::string request);
  void Answer(Ordinal ordinal, std::string answer);
  void Drop(Ordinal ordinal);

  EventLoop& loop_;
  HttpAnswers answers_;
  Ordinal next_ordinal_ = 0;
  std::map<Ordinal, Connection> connections_;
  std::unique_ptr<TcpListener> listener_;
  TaskPool pool_;  // ends before what its tasks use
};

}  // namespace penstock
