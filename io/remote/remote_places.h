// Where an address leads and who asks there: the server, its region, and the credentials, by the
// longest prefix of the options.
//
// Threads:  safe from any thread.
// Owns:     the keepers of credentials, one for each prefix and protocol.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "io/credentials/credential_keeper.h"
#include "io/credentials/environment.h"
#include "io/http/http_message.h"
#include "io/remote/remote_options.h"
#include "io/remote/remote_url.h"

namespace penstock {

// Constant, but for the region, which a redirect may tell.
class RemotePlace {
 public:
  std::string endpoint;  // "": the provider's own
  Reach reach = Reach::kPublic;
  std::string proxy;
  std::string authorities;
  std::shared_ptr<CredentialKeeper> keeper;  // null: nobody is named to the server

  std::string region() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return region_;
  }
  void set_region(const std::string& region) {
    std::lock_guard<std::mutex> lock(mutex_);
    region_ = region;
  }

 private:
  mutable std::mutex mutex_;
  std::string region_;  // under mutex_
};

class RemotePlaces {
 public:
  RemotePlaces(RemoteOptions options, Environment environment);

  // PermissionDenied where a spec may not name it.
  absl::StatusOr<std::shared_ptr<RemotePlace>> PlaceOf(const RemoteUrl& url);

 private:
  std::shared_ptr<CredentialKeeper> KeeperOf(const RemotePrefix& prefix, Scheme scheme);

  const RemoteOptions options_;
  const Environment environment_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<CredentialKeeper>> keepers_;  // under mutex_
  std::map<std::string, std::shared_ptr<RemotePlace>>
      places_;  // under mutex_; by prefix and bucket
};

}  // namespace penstock
