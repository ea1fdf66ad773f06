// The status page and the metrics, for browsers and Prometheus on this machine's loopback. It only
// tells: there is no request that changes anything.
//
// Threads:  made and destroyed by one thread; it answers on kThreads of its own.
// Owns:     its port. Table, monitor and access must outlive it.
// Limits:   kThreads requests at a time, 4 KiB each, and 5 seconds for a client to send or take
//           something. A request whose Host is another name than this machine's is refused, so that a
//           page of somebody else's in a browser here cannot read it.
// Cost:     a request takes a snapshot of every pipeline; nothing without requests.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/service/access.h"
#include "server/service/monitor.h"
#include "server/service/pipeline_table.h"

namespace penstock {

class HttpServer {
 public:
  static constexpr int kThreads = 2;

  // `port`: of 127.0.0.1; 0 takes a free one. Unavailable when it is taken.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(int port, const PipelineTable& table,
                                                            const Monitor& monitor,
                                                            const Access& access);
  ~HttpServer();

  int port() const;

 private:
  struct Server;
  explicit HttpServer(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

}  // namespace penstock
