#include "io/remote/object_store.h"

#include <curl/curl.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {

const ObjectStore& StoreOf(Scheme scheme) {
  switch (scheme) {
    case Scheme::kS3:
      return S3Store();
    case Scheme::kGs:
      return GcsStore();
    default:
      return HttpStore();
  }
}

FileVersion VersionOf(const ObjectState& state) {
  FileVersion version;
  const std::string& name = state.generation.empty() ? state.etag : state.generation;
  if (!name.empty()) {
    // FNV-1a: it must stay the same from run to run.
    version.object = 0xcbf29ce484222325u;
    for (const char byte : name)
      version.object = (version.object ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  } else if (!state.last_modified.empty()) {
    version.modified_ns =
        curl_getdate(state.last_modified.c_str(), nullptr) * int64_t{1'000'000'000};
  }
  return version;
}

absl::StatusOr<ObjectState> DescribeHead(const HttpResponse& response, const std::string& shown) {
  ObjectState state;
  state.etag = std::string(response.Header("etag"));
  state.last_modified = std::string(response.Header("last-modified"));
  const std::optional<ContentRange> range = ParseContentRange(response.Header("content-range"));
  if (range && range->total) {
    state.size = *range->total;
  } else if (range || !absl::SimpleAtoi(response.Header("content-length"), &state.size)) {
    // The length of a part says nothing of the whole.
    return absl::UnimplementedError(absl::StrCat(
        "the server does not say how long the object is: expected a total in Content-Range, or "
        "Content-Length (",
        shown, ")"));
  }
  if (state.size > kObjectBytesMax) {
    return absl::DataLossError(absl::StrCat("the server says that the object has ", state.size,
                                            " bytes, which none has (", shown, ")"));
  }
  return state;
}

}  // namespace penstock
