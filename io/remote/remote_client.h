// Objects by their addresses: heads, lists, and who makes the requests of one object's ranges.
//
// Threads:  safe from any thread. Describe() and List() wait for the network.
// Cost:     a request for each object that is described, one for 1,000 that are listed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "io/http/range_fetcher.h"
#include "io/remote/object_store.h"
#include "io/remote/remote_places.h"

namespace penstock {

struct FoundObject {
  RemoteUrl url;
  ObjectState state;
};

class RemoteClient {
 public:
  RemoteClient(RemoteOptions options, Environment environment)
      : places_(std::move(options), std::move(environment)) {}

  absl::StatusOr<ObjectState> Describe(const RemoteUrl& url);
  // What a glob stands for, in no order; nothing where nothing matches. A key that is written as the glob stands for itself.
  absl::StatusOr<std::vector<FoundObject>> List(const RemoteUrl& glob);
  absl::StatusOr<std::shared_ptr<RequestMaker>> MakerOf(const RemoteUrl& url, ObjectState state);
  // Sends what `make` makes of the request for an object, until it is done or final. It may be sent more than once.
  absl::StatusOr<HttpResponse> Send(const RemoteUrl& url,
                                    absl::FunctionRef<HttpRequest(HttpRequest object)> make);

 private:
  absl::StatusOr<HttpResponse> Ask(const ObjectStore& store, RemotePlace& place,
                                   const std::string& shown,
                                   absl::FunctionRef<absl::StatusOr<HttpRequest>()> make);
  // All pages of one prefix.
  absl::StatusOr<ListPage> ListAll(const RemoteUrl& bucket, const std::string& prefix,
                                   const std::string& delimiter, RemotePlace& place);
  // Of a glob without braces; what follows `done`, which holds no wildcard.
  absl::Status ListLevel(const RemoteUrl& bucket, const std::string& done, const std::string& rest,
                         RemotePlace& place, std::vector<FoundObject>* found);

  RemotePlaces places_;
};

}  // namespace penstock
