// The daemon's Unix socket in the file system, and the lock that makes it the only daemon there.
//
// Beside the socket `PATH` stands `PATH.lock`, which holds the daemon's process id and the number
// of its PID namespace, a line each, and is locked (flock) as long as the daemon lives; a socket
// without a locked file beside it is left over from a crash and is replaced. A lock that belongs to
// somebody else, is a link, or has another name too is refused: nothing is written to what others
// have laid there.
//
// Threads: none.
// Owns:    the listening descriptor, the lock, and both files until it is destroyed; not what
//          others have put in their place.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ring/descriptor.h"

namespace penstock {

class SocketFile {
 public:
  // Makes the directory (0750) if it is missing, takes the lock, binds (0660) and listens.
  // FailedPrecondition naming the other daemon's process id when the lock is held; AlreadyExists
  // when something that is no socket stands at `path`; PermissionDenied for a lock of somebody
  // else.
  static absl::StatusOr<std::unique_ptr<SocketFile>> Create(const std::string& path);

  // The same for a socket at which the service manager listens already: its file is the service
  // manager's, and stays.
  static absl::StatusOr<std::unique_ptr<SocketFile>> Adopt(ring::Descriptor socket);
  ~SocketFile();

  const std::string& path() const { return path_; }

  int fd() const { return socket_.get(); }

  // The process id of the daemon that was here before, in this PID namespace, and did not end by
  // itself; 0: there was none.
  pid_t predecessor() const { return predecessor_; }

  // Whether both files still stand at their paths; of a service manager's socket, the lock.
  bool IsInPlace() const;
  // Makes them again where they were removed, with another descriptor to listen at. Errors as
  // Create(); then the descriptor is as it was.
  absl::Status PutBack();

  // Removes the directory too, at the end, if that leaves it empty: for a private daemon, whose
  // owner made it for this socket alone.
  void RemoveDirectoryToo() { remove_directory_ = true; }

 private:
  SocketFile(std::string path, ring::Descriptor lock, pid_t predecessor)
      : path_(std::move(path)), predecessor_(predecessor), lock_(std::move(lock)) {}
  absl::Status Listen();
  bool HasSocketInPlace() const;

  const std::string path_;
  const pid_t predecessor_;
  ring::Descriptor lock_;
  ring::Descriptor socket_;
  // Of the file that socket_ is bound to.
  dev_t socket_device_ = 0;
  ino_t socket_inode_ = 0;
  bool owns_socket_ = true;
  bool remove_directory_ = false;
};

}  // namespace penstock
