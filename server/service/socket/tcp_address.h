// An address of numbers with a port, as TcpOptions names it.
#pragma once

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"

namespace penstock {

struct TcpAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// "10.0.0.5:9465", "[::1]:9465"; InvalidArgument for everything else, names among them.
absl::StatusOr<TcpAddress> ParseTcpAddress(const std::string& text);

}  // namespace penstock
