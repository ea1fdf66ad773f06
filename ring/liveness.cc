#include "ring/liveness.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace penstock::ring {

Status CheckPeer(int socket, Peer* out) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return {Code::kUnauthenticated,
            std::string("the peer's credentials cannot be read: ") + std::strerror(errno)};
  }
  *out = {credentials.pid, credentials.uid, credentials.gid, -1};
  int pidfd = -1;
  size = sizeof pidfd;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
    out->pidfd = pidfd;
  } else if (errno == ENOPROTOOPT && credentials.pid > 0) {
    out->pidfd = static_cast<int>(syscall(SYS_pidfd_open, credentials.pid, 0));
  }
  return {};
}

}  // namespace penstock::ring
