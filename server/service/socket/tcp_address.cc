#include "server/service/socket/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {

absl::StatusOr<TcpAddress> ParseTcpAddress(const std::string& text) {
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "tcp.address: expected numbers and a port, as 10.0.0.5:9465 or [::1]:9465, found \"",
      text.substr(0, 128), "\""));
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == text.npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return bad;
  }
  std::string host = text.substr(0, colon);
  TcpAddress address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(sockaddr_in6);
    if (inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) != 1) return bad;
  } else {
    auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(sockaddr_in);
    if (inet_pton(AF_INET, host.c_str(), &four->sin_addr) != 1) return bad;
  }
  return address;
}

}  // namespace penstock
