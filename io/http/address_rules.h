// Which network addresses a request may connect to, so that nobody reads a machine's own services
// by naming them in a spec (server-side request forgery). The address that is connected to is
// judged, whatever name led to it and whenever.
//
//                    public   loopback   link-local, metadata services, unspecified, multicast
//     kPublic        yes      no         no
//     kLoopback      yes      yes        no
//     kAnywhere      yes      yes        yes
//
// IPv4 addresses inside of IPv6 ones (mapped, compatible, NAT64, 6to4) are judged as what they lead
// to. Addresses of private networks are public here: object stores live there. Where a proxy
// connects, its own rules decide.
//
// Threads:  any; no state.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace penstock {

enum class Reach : uint8_t {
  kPublic,    // what a spec names, in a daemon of several users
  kLoopback,  // what a spec names, in a process' own daemon
  kAnywhere,  // endpoints and prefixes that the configuration names, and metadata services
};

bool MayConnect(const sockaddr& address, Reach reach);

}  // namespace penstock
