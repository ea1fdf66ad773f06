// Who is at the other end of a Unix socket, and whether it still lives.
//
// Threads:  safe from any thread.
// Owns:     Peer::pidfd is the caller's to close.
// Cost:     three system calls.
#pragma once

#include <sys/types.h>

#include "ring/status.h"

namespace penstock::ring {

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  // Polls readable (POLLIN) when the process has ended. -1 where the process had ended before it
  // could be opened, or is not visible from here (another pid namespace): then only the socket's
  // hang-up tells.
  int pidfd = -1;
};

// The process that connected `socket`, as the kernel recorded it; what a client says about itself
// is never asked for. The pidfd comes from SO_PEERPIDFD, or from pidfd_open on older kernels.
Status CheckPeer(int socket, Peer* out);

}  // namespace penstock::ring
