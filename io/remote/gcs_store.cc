#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "io/credentials/json_text.h"
#include "io/http/uri_encode.h"
#include "io/remote/object_store.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr char kServer[] = "https://storage.googleapis.com";

absl::StatusOr<RemoteObject> ObjectIn(const Json& json, const std::string& shown) {
  RemoteObject object;
  object.key = JsonText(json, "name");
  object.state.generation = JsonText(json, "generation");
  // Emulators write numbers as numbers.
  const std::string size = json.contains("size") && json["size"].is_number_unsigned()
                               ? absl::StrCat(json["size"].get<uint64_t>())
                               : JsonText(json, "size");
  if (object.key.empty() || !absl::SimpleAtoi(size, &object.state.size) ||
      object.state.size > kObjectBytesMax) {
    return absl::DataLossError(
        absl::StrCat("expected an object with name and size in JSON (", shown, ")"));
  }
  // It becomes a header.
  const std::string& generation = object.state.generation;
  if (!std::all_of(generation.begin(), generation.end(), absl::ascii_isdigit)) {
    return absl::DataLossError(
        absl::StrCat("expected a generation of digits in an object's JSON (", shown, ")"));
  }
  return object;
}

class Gcs final : public ObjectStore {
 public:
  // The XML interface: its ranges have the generation in their heads.
  HttpRequest Object(const RemoteUrl& url, const RemotePlace& place) const override {
    HttpRequest request;
    request.url = absl::StrCat(Server(place), "/", url.bucket, "/", EncodePath(url.key));
    Fill(place, &request);
    request.headers.push_back("Accept-Encoding: identity");
    return request;
  }

  void Hold(const ObjectState& state, HttpRequest* object) const override {
    if (!state.generation.empty())
      object->headers.push_back(absl::StrCat("x-goog-if-generation-match: ", state.generation));
  }

  void Authorise(const Credentials& credentials, const RemotePlace&,
                 HttpRequest* request) const override {
    if (!credentials.bearer.empty())
      request->headers.push_back(absl::StrCat("Authorization: Bearer ", credentials.bearer));
  }

  HttpRequest Head(const RemoteUrl& url, const RemotePlace& place) const override {
    HttpRequest request;
    request.url = absl::StrCat(Server(place), "/storage/v1/b/", EncodeQuery(url.bucket), "/o/",
                               EncodeQuery(url.key));
    Fill(place, &request);
    return request;
  }

  absl::StatusOr<ObjectState> Describe(const HttpResponse& response,
                                       const std::string& shown) const override {
    const Json json = Json::parse(response.body, nullptr, /*allow_exceptions=*/false);
    absl::StatusOr<RemoteObject> object = ObjectIn(json, shown);
    if (!object.ok()) return object.status();
    return object->state;
  }

  absl::StatusOr<HttpRequest> ListRequest(const RemoteUrl& bucket, const std::string& prefix,
                                          const std::string& delimiter, const std::string& next,
                                          const RemotePlace& place) const override {
    HttpRequest request;
    request.url = absl::StrCat(
        Server(place), "/storage/v1/b/", EncodeQuery(bucket.bucket), "/o?",
        delimiter.empty() ? "" : absl::StrCat("delimiter=", EncodeQuery(delimiter), "&"),
        next.empty() ? "" : absl::StrCat("pageToken=", EncodeQuery(next), "&"),
        "prefix=", EncodeQuery(prefix));
    Fill(place, &request);
    return request;
  }

  absl::StatusOr<ListPage> ParseList(const std::string& body,
                                     const std::string& shown) const override {
    const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
      return absl::DataLossError(absl::StrCat("expected the JSON of a list, found ", body.size(),
                                              " bytes of something else (", shown, ")"));
    }
    ListPage page;
    if (json.contains("items") && json["items"].is_array()) {
      for (const Json& item : json["items"]) {
        absl::StatusOr<RemoteObject> object = ObjectIn(item, shown);
        if (!object.ok()) return object.status();
        page.objects.push_back(*std::move(object));
      }
    }
    if (json.contains("prefixes") && json["prefixes"].is_array()) {
      for (const Json& prefix : json["prefixes"])
        if (prefix.is_string()) page.folders.push_back(prefix.get<std::string>());
    }
    page.next = JsonText(json, "nextPageToken");
    return page;
  }

 private:
  static std::string Server(const RemotePlace& place) {
    return place.endpoint.empty() ? kServer : place.endpoint;
  }
  static void Fill(const RemotePlace& place, HttpRequest* request) {
    request->reach = place.reach;
    request->proxy = place.proxy;
    request->authorities = place.authorities;
  }
};

}  // namespace

const ObjectStore& GcsStore() {
  static const Gcs store;
  return store;
}

}  // namespace penstock
