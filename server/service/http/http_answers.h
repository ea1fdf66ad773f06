// What the status page's server says: the page, the numbers in it as JSON, pictures of batches, and
// the metrics. It only tells: there is no request that changes anything.
//
// Threads:  any, several at a time.
// Owns:     nothing; table, monitor and access must outlive it.
// Limits:   a request whose Host is another name than this machine's is refused, so that a page of
//           somebody else's in a browser here cannot read it.
// Cost:     a snapshot of every pipeline.
#pragma once

#include <memory>
#include <string>

#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/access.h"
#include "server/service/tune/monitor.h"

namespace penstock {

class HttpAnswers {
 public:
  HttpAnswers(const PipelineTable& table, const Monitor& monitor, const Access& access);
  ~HttpAnswers();

  // The whole response to a request whose head is complete, after which the connection is to be
  // closed. What follows the head is its body, as far as it has come.
  std::string Answer(std::string request);

 private:
  class Server;
  const std::unique_ptr<Server> server_;
};

}  // namespace penstock
