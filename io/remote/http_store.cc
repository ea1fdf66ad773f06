#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/remote/object_store.h"

namespace penstock {
namespace {

class Http final : public ObjectStore {
 public:
  HttpRequest Object(const RemoteUrl& url, const RemotePlace& place) const override {
    HttpRequest request;
    request.url = place.endpoint.empty() ? url.text() : absl::StrCat(place.endpoint, "/", url.key);
    request.reach = place.reach;
    request.proxy = place.proxy;
    request.authorities = place.authorities;
    // What is compressed has no ranges to speak of.
    request.headers.push_back("Accept-Encoding: identity");
    return request;
  }

  void Hold(const ObjectState& state, HttpRequest* object) const override {
    // A weak tag never fits (RFC 9110, 13.1.1).
    if (!state.etag.empty() && !absl::StartsWith(state.etag, "W/")) {
      object->headers.push_back(absl::StrCat("If-Match: ", state.etag));
    } else if (state.etag.empty() && !state.last_modified.empty()) {
      object->headers.push_back(absl::StrCat("If-Unmodified-Since: ", state.last_modified));
    }
  }

  void Authorise(const Credentials&, const RemotePlace&, HttpRequest*) const override {}

  // A range of one byte tells the size, and whether there are ranges at all.
  HttpRequest Head(const RemoteUrl& url, const RemotePlace& place) const override {
    HttpRequest request = Object(url, place);
    request.headers.push_back("Range: bytes=0-0");
    // More is an error's page, or an object that was sent whole.
    request.body_bytes_max = 1 << 20;
    return request;
  }

  absl::StatusOr<ObjectState> Describe(const HttpResponse& response,
                                       const std::string& shown) const override {
    absl::StatusOr<ObjectState> state = DescribeHead(response, shown);
    if (!state.ok()) return state;
    const bool has_range = !response.Header("content-range").empty();
    // One that is empty has none.
    if (!has_range && state->size > 0) {
      return absl::UnimplementedError(absl::StrCat(
          "the server gives no ranges: expected HTTP 206 with Content-Range, found HTTP ",
          response.status, " (", shown, ")"));
    }
    return state;
  }

  absl::StatusOr<HttpRequest> ListRequest(const RemoteUrl& bucket, const std::string&,
                                          const std::string&, const std::string&,
                                          const RemotePlace&) const override {
    return absl::UnimplementedError(absl::StrCat("HTTP has no lists (", bucket.text(), ")"));
  }
  absl::StatusOr<ListPage> ParseList(const std::string&, const std::string&) const override {
    return absl::UnimplementedError("HTTP has no lists");
  }
};

}  // namespace

const ObjectStore& HttpStore() {
  static const Http store;
  return store;
}

}  // namespace penstock
