// The gRPC server, without a port of its own: it serves the connections that it is given.
//
// Threads:  the event loop's; gRPC runs the calls on threads of its own.
// Owns:     the server and its connections. gRPC's headers are left to the file behind this one.
// Limits:   connection_limits; a connection beyond max_control_connections is closed, unless
//           another user has more of them than its own: then the one of his that asked for
//           something longest ago is. Each call is checked against the access rules and counted.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/access.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/fair_places.h"
#include "server/service/socket/listener.h"
#include "server/service/socket/settings.h"
#include "server/service/tune/monitor.h"

namespace grpc {
class ServerContext;
}

namespace penstock {

class ControlServer {
 public:
  // With the standard services for health and reflection.
  // All must outlive it.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Create(EventLoop& loop,
                                                               PipelineTable& table,
                                                               const Monitor& monitor,
                                                               const Settings& settings,
                                                               Access& access);
  // Gives running calls a second to end.
  ~ControlServer();

  void Adopt(Visitor visitor);
  // Somebody who has connected by TCP from `address` (a number, without the port). REQUIRES: tcp is
  // configured.
  void AdoptTcp(ring::Descriptor socket, const std::string& address);

  size_t connections() const { return connections_.size(); }

 private:
  struct Grpc;

  ControlServer(EventLoop& loop, PipelineTable& table, const Monitor& monitor,
                const Settings& settings, Access& access);
  void Forget(int key);
  // Closes the connection that another user has to give up for one of `user`; false where none has.
  bool MakeRoomFor(uid_t user);
  // Who made a call: by his certificate, or by the name that gRPC gives his connection.
  std::optional<Identity> WhoIs(const grpc::ServerContext& context) const;
  // Keeps a duplicate of the socket until its end; false when that cannot be.
  bool WatchOver(int socket, const std::string& peer, const std::string& address, int* key);

  // A duplicate of a connection's descriptor, by which its end is noticed: gRPC does not tell.
  struct Connection {
    ring::Descriptor socket;
    EventLoop::Id watch = 0;
    std::string peer;
    std::string address;  // of one who came by TCP
  };
  // Somebody at the other end, under the name that gRPC gives a connection: "fd:" and its number.
  // The number is not given to another one before the last call of this connection is gone.
  struct Peer {
    int key = 0;  // in connections_
    Identity who;
  };

  EventLoop& loop_;
  const Settings& settings_;
  Access& access_;
  const std::unique_ptr<Grpc> grpc_;
  std::map<int, Connection> connections_;  // by the duplicate's number
  std::map<std::string, int> by_address_;  // those that came by TCP
  int tcp_connections_ = 0;
  uint64_t refused_ = 0;
  uint64_t tcp_refused_ = 0;
  mutable std::mutex peers_mutex_;
  std::map<std::string, Peer> peers_;  // under peers_mutex_
  mutable FairPlaces places_;          // under peers_mutex_; keys of peers_
};

}  // namespace penstock
