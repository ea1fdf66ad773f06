#include <algorithm>
#include <pugixml.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "io/http/uri_encode.h"
#include "io/remote/object_store.h"

namespace penstock {
namespace {

// Some servers leave the quotes of a tag out of lists, and have them in heads.
std::string Quoted(const std::string& tag) {
  const bool is_quoted = tag.empty() || tag.back() == '"';
  return is_quoted ? tag : absl::StrCat("\"", tag, "\"");
}

class S3 final : public ObjectStore {
 public:
  HttpRequest Object(const RemoteUrl& url, const RemotePlace& place) const override {
    HttpRequest request;
    request.url = absl::StrCat(BucketUrl(url, place), "/", EncodePath(url.key));
    request.reach = place.reach;
    request.proxy = place.proxy;
    request.authorities = place.authorities;
    return request;
  }

  void Hold(const ObjectState& state, HttpRequest* object) const override {
    if (!state.etag.empty()) object->headers.push_back(absl::StrCat("If-Match: ", state.etag));
  }

  void Authorise(const Credentials& credentials, const RemotePlace& place,
                 HttpRequest* request) const override {
    if (credentials.access_key_id.empty()) return;
    request->signing = AwsSigning{credentials.access_key_id, credentials.secret_access_key,
                                  credentials.session_token, place.region(), "s3"};
  }

  HttpRequest Head(const RemoteUrl& url, const RemotePlace& place) const override {
    HttpRequest request = Object(url, place);
    request.method = "HEAD";
    return request;
  }

  absl::StatusOr<ObjectState> Describe(const HttpResponse& response,
                                       const std::string& shown) const override {
    absl::StatusOr<ObjectState> state = DescribeHead(response, shown);
    // The list's time is written otherwise, and the tag says more.
    if (state.ok() && !state->etag.empty()) state->last_modified.clear();
    return state;
  }

  absl::StatusOr<HttpRequest> ListRequest(const RemoteUrl& bucket, const std::string& prefix,
                                          const std::string& delimiter, const std::string& next,
                                          const RemotePlace& place) const override {
    HttpRequest request;
    // In byte order: libcurl signs the query as it stands.
    request.url = absl::StrCat(
        BucketUrl(bucket, place), "/?",
        next.empty() ? "" : absl::StrCat("continuation-token=", EncodeQuery(next), "&"),
        delimiter.empty() ? "" : absl::StrCat("delimiter=", EncodeQuery(delimiter), "&"),
        "encoding-type=url&list-type=2&prefix=", EncodeQuery(prefix));
    request.reach = place.reach;
    request.proxy = place.proxy;
    request.authorities = place.authorities;
    return request;
  }

  absl::StatusOr<ListPage> ParseList(const std::string& body,
                                     const std::string& shown) const override {
    pugi::xml_document document;
    // Its default takes no document types, so that there are no entities to grow.
    const pugi::xml_parse_result parsed = document.load_buffer(body.data(), body.size());
    const pugi::xml_node list = document.child("ListBucketResult");
    if (!parsed || !list) {
      return absl::DataLossError(absl::StrCat("expected the XML of a list, found ", body.size(),
                                              " bytes of something else (", shown, ")"));
    }
    const bool is_encoded = absl::string_view(list.child_value("EncodingType")) == "url";
    const auto name_of = [is_encoded](const char* text) {
      return is_encoded ? DecodeUri(text, /*plus_is_space=*/true) : std::string(text);
    };
    ListPage page;
    for (const pugi::xml_node entry : list.children("Contents")) {
      RemoteObject object;
      object.key = name_of(entry.child_value("Key"));
      object.state.etag = Quoted(entry.child_value("ETag"));
      if (object.key.empty() || !absl::SimpleAtoi(entry.child_value("Size"), &object.state.size) ||
          object.state.size > kObjectBytesMax) {
        return absl::DataLossError(
            absl::StrCat("a list has an entry without a key or size (", shown, ")"));
      }
      // It becomes a header.
      if (!std::all_of(object.state.etag.begin(), object.state.etag.end(), absl::ascii_isprint)) {
        return absl::DataLossError(
            absl::StrCat("a list has an ETag with other than printable characters (", shown, ")"));
      }
      page.objects.push_back(std::move(object));
    }
    for (const pugi::xml_node entry : list.children("CommonPrefixes"))
      page.folders.push_back(name_of(entry.child_value("Prefix")));
    if (absl::string_view(list.child_value("IsTruncated")) == "true") {
      page.next = list.child_value("NextContinuationToken");
      if (page.next.empty()) {
        return absl::DataLossError(
            absl::StrCat("a list is cut and does not say how it goes on (", shown, ")"));
      }
    }
    return page;
  }

  std::string RegionIn(const HttpResponse& response) const override {
    const absl::string_view region = response.Header("x-amz-bucket-region");
    // It becomes a part of a host's name.
    const bool is_name = std::all_of(region.begin(), region.end(), [](char letter) {
      return absl::ascii_isalnum(letter) || letter == '-';
    });
    return is_name ? std::string(region) : "";
  }

 private:
  static std::string BucketUrl(const RemoteUrl& url, const RemotePlace& place) {
    if (!place.endpoint.empty()) return absl::StrCat(place.endpoint, "/", url.bucket);
    const std::string region = place.region();
    // A dot in the name is in no certificate.
    if (absl::StrContains(url.bucket, '.'))
      return absl::StrCat("https://s3.", region, ".amazonaws.com/", url.bucket);
    return absl::StrCat("https://", url.bucket, ".s3.", region, ".amazonaws.com");
  }
};

}  // namespace

const ObjectStore& S3Store() {
  static const S3 store;
  return store;
}

}  // namespace penstock
