// What one protocol knows: how an object is asked for, what its head says, and how objects are listed. One file each: http_store.cc,
// s3_store.cc, gcs_store.cc.
//
// Threads:  constant; any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/http/range_fetcher.h"
#include "io/remote/remote_places.h"
#include "io/remote/remote_url.h"

namespace penstock {

struct RemoteObject {
  std::string key;
  ObjectState state;
};

struct ListPage {
  std::vector<RemoteObject> objects;
  std::vector<std::string> folders;  // common prefixes, with the slash
  std::string next;                  // what the next page is asked for with; "": there is none
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  // The object, without credentials: who asks adds them (Authorise).
  virtual HttpRequest Object(const RemoteUrl& url, const RemotePlace& place) const = 0;
  // Adds that it must still be this state. `object`: its request.
  virtual void Hold(const ObjectState& state, HttpRequest* object) const = 0;
  // Adds who asks.
  virtual void Authorise(const Credentials& credentials, const RemotePlace& place,
                         HttpRequest* request) const = 0;
  // The request whose answer Describe() reads.
  virtual HttpRequest Head(const RemoteUrl& url, const RemotePlace& place) const = 0;
  virtual absl::StatusOr<ObjectState> Describe(const HttpResponse& response,
                                               const std::string& shown) const = 0;
  // Objects and folders whose names begin with `prefix`; "/" is the `delimiter`, or "". Unimplemented where the protocol has no lists.
  virtual absl::StatusOr<HttpRequest> ListRequest(const RemoteUrl& bucket,
                                                  const std::string& prefix,
                                                  const std::string& delimiter,
                                                  const std::string& next,
                                                  const RemotePlace& place) const = 0;
  virtual absl::StatusOr<ListPage> ParseList(const std::string& body,
                                             const std::string& shown) const = 0;
  // The region that a redirect names; "": none.
  virtual std::string RegionIn(const HttpResponse& response) const { return ""; }
};

const ObjectStore& StoreOf(Scheme scheme);

const ObjectStore& HttpStore();
const ObjectStore& S3Store();
const ObjectStore& GcsStore();

// No object is longer. What follows a size, such as the end of its last page, is a number, too.
inline constexpr uint64_t kObjectBytesMax = uint64_t{1} << 60;

// The version that a state is (base/file.h): of the generation or ETag, else of the time.
FileVersion VersionOf(const ObjectState& state);

// What the heads of HTTP and S3 say.
absl::StatusOr<ObjectState> DescribeHead(const HttpResponse& response, const std::string& shown);

}  // namespace penstock
