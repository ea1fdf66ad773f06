// The gRPC server, without a port of its own: it serves the connections that it is given.
//
// Threads:  the event loop's; gRPC runs the calls on threads of its own.
// Owns:     the server and its connections. gRPC's headers are left to the file behind this one.
// Limits:   `limits`; a connection beyond max_control_connections is closed.
#pragma once

#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "penstock/v1/server.pb.h"
#include "server/service/event_loop.h"
#include "server/service/listener.h"
#include "server/service/pipeline_table.h"

namespace penstock {

class ControlServer {
 public:
  // With the standard services for health and reflection.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Create(EventLoop& loop,
                                                               PipelineTable& table,
                                                               const v1::ConnectionLimits& limits);
  // Gives running calls a second to end.
  ~ControlServer();

  void Adopt(Visitor visitor);

  size_t connections() const { return connections_.size(); }

 private:
  struct Grpc;

  ControlServer(EventLoop& loop, PipelineTable& table, int max_connections);

  // A duplicate of a connection's descriptor, by which its end is noticed: gRPC does not tell.
  struct Connection {
    ring::Descriptor socket;
    EventLoop::Id watch = 0;
  };

  EventLoop& loop_;
  const size_t max_connections_;
  const std::unique_ptr<Grpc> grpc_;
  std::map<int, Connection> connections_;  // by the duplicate's number
};

}  // namespace penstock
