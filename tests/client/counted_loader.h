// A loader of the C library at a server of tests/support/server_process.h, whose pipeline is
// "counted".
#pragma once

#include <memory>
#include <string>

#include "client/c/penstock.h"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"

namespace penstock {

struct Detach {
  void operator()(penstock_loader* loader) const { penstock_detach(loader); }
};
using LoaderPtr = std::unique_ptr<penstock_loader, Detach>;

// Without seconds to reconnect: a server that is killed then has no successor.
inline LoaderPtr AttachTo(const ServerProcess& server, double reconnect_seconds = 0,
                          const char* name = nullptr) {
  penstock_loader* loader = nullptr;
  penstock_attach_options options;
  penstock_default_options(&options);
  options.pipeline = "counted";
  const std::string socket = server.socket();
  options.socket = socket.c_str();
  options.consumer_name = name;
  options.reconnect_seconds = reconnect_seconds;
  const int code = penstock_attach_with(&options, &loader);
  INFO(penstock_last_error());
  REQUIRE(code == PENSTOCK_OK);
  return LoaderPtr(loader);
}

}  // namespace penstock
