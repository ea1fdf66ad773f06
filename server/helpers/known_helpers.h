// Where the helpers are that a configuration names: numbers at once, names as often as they are
// looked up, and those of a file as it changes.
//
// Threads:  safe from any thread.
// Owns:     a thread that looks names up and reads the file, where there are any; a look-up or a
//           read that hangs keeps nobody.
// Limits:   kMost addresses.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

struct HelperAddress {
  std::string shown;  // "10.0.0.7:9466"
  std::string host;   // for which its certificate is: the name or number of the configuration
  sockaddr_storage storage{};
  socklen_t size = 0;

  bool is_loopback() const;
  bool operator==(const HelperAddress& other) const {
    return shown == other.shown && host == other.host;
  }
};

class KnownHelpers {
 public:
  static constexpr size_t kMost = 256;

  // InvalidArgument for a text that is neither "host:port" nor the absolute path of a file with
  // such lines, and for too many of them.
  static absl::Status Check(const std::vector<std::string>& addresses);
  // The same. A file may be missing, then and later.
  static absl::StatusOr<std::unique_ptr<KnownHelpers>> Create(
      const std::vector<std::string>& addresses);
  ~KnownHelpers();

  // Grows with each change of List().
  uint64_t version() const;
  std::vector<HelperAddress> List() const;

 private:
  struct State;
  explicit KnownHelpers(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
};

}  // namespace penstock
