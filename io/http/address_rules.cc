#include "io/http/address_rules.h"

#include <netinet/in.h>

#include <cstring>

namespace penstock {
namespace {

enum class Kind { kOpen, kLoopback, kClosed };

Kind KindOf4(uint32_t address) {  // in the host's order
  const uint32_t first = address >> 24;
  if (first == 127) return Kind::kLoopback;
  if (first == 0 || first >= 224) return Kind::kClosed;
  if (address >> 16 == ((169u << 8) | 254)) return Kind::kClosed;
  // The metadata services of Alibaba (100.100.100.200), Oracle (192.0.0.192) and Azure's hosts (168.63.129.16) are no link-local addresses.
  if (address == 0x646464c8u || address == 0xc00000c0u || address == 0xa83f8110u)
    return Kind::kClosed;
  return Kind::kOpen;
}

uint32_t Word(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

Kind KindOf6(const uint8_t* bytes) {
  static constexpr uint8_t kZeros[16] = {};
  static constexpr uint8_t kNat64[12] = {0x00, 0x64, 0xff, 0x9b};
  // fd00:ec2::254 and fd00:ec2::23, AWS' own.
  static constexpr uint8_t kAws[6] = {0xfd, 0x00, 0x0e, 0xc2};
  // fd20:ce::254, Google's own.
  static constexpr uint8_t kGoogle[6] = {0xfd, 0x20, 0x00, 0xce};
  // The part of NAT64 that each network uses as it likes (RFC 8215), here for a prefix of 96 bits.
  static constexpr uint8_t kLocalNat64[12] = {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01};
  if (std::memcmp(bytes, kZeros, 10) == 0 && bytes[10] == 0xff && bytes[11] == 0xff)
    return KindOf4(Word(bytes + 12));
  if (std::memcmp(bytes, kZeros, 12) == 0) {
    const uint32_t word = Word(bytes + 12);
    if (word == 0) return Kind::kClosed;
    return word == 1 ? Kind::kLoopback : KindOf4(word);
  }
  if (std::memcmp(bytes, kNat64, 12) == 0 || std::memcmp(bytes, kLocalNat64, 12) == 0)
    return KindOf4(Word(bytes + 12));
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return KindOf4(Word(bytes + 2));
  if (bytes[0] == 0xff) return Kind::kClosed;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return Kind::kClosed;
  if (std::memcmp(bytes, kAws, 6) == 0 || std::memcmp(bytes, kGoogle, 6) == 0) return Kind::kClosed;
  return Kind::kOpen;
}

Kind KindOf(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof(in));
    return KindOf4(ntohl(in.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, &address, sizeof(in));
    return KindOf6(in.sin6_addr.s6_addr);
  }
  return Kind::kClosed;
}

}  // namespace

bool MayConnect(const sockaddr& address, Reach reach) {
  if (reach == Reach::kAnywhere)
    return address.sa_family == AF_INET || address.sa_family == AF_INET6;
  const Kind kind = KindOf(address);
  return kind == Kind::kOpen || (kind == Kind::kLoopback && reach == Reach::kLoopback);
}

}  // namespace penstock
