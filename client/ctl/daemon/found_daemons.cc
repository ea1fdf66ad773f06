#include "client/ctl/daemon/found_daemons.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "ring/attach.h"
#include "ring/descriptor.h"

namespace penstock::ctl {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "penstock-";
constexpr char kSocketName[] = "penstock.sock";

// A folder of this user alone, which nobody else can have put there.
bool IsOwn(const fs::path& folder) {
  struct stat status;
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & 0077) == 0;
}

bool Listens(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  // Without waiting for a daemon whose queue is full.
  const ring::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return false;
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

void Look(const fs::path& folder, bool inside, std::set<std::string>* found) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if ((!inside && !absl::StartsWith(path.filename().string(), kPrefix)) || !IsOwn(path)) continue;
    const std::string socket = path / kSocketName;
    if (Listens(socket)) found->insert(socket);
    // The shared ones of a host have a folder for them all.
    if (!inside) Look(path, /*inside=*/true, found);
  }
}

}  // namespace

std::vector<std::string> FindDaemons() {
  std::set<std::string> folders = {"/tmp"};
  for (const char* name : {"TMPDIR", "XDG_RUNTIME_DIR"}) {
    const char* folder = getenv(name);
    if (folder != nullptr && folder[0] == '/') folders.insert(folder);
  }
  std::set<std::string> found;
  for (const std::string& folder : folders) Look(folder, /*inside=*/false, &found);
  found.erase(ring::DefaultSocketPath());
  return {found.begin(), found.end()};
}

}  // namespace penstock::ctl
