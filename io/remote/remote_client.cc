#include "io/remote/remote_client.h"

#include <unordered_set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/http/perform.h"
#include "io/remote/object_glob.h"

namespace penstock {
namespace {

// Of one glob.
constexpr size_t kObjectsMax = 10'000'000;

// Whether what a glob lists has the object that is called as the glob is, too.
bool IsInItsList(const std::string& glob) {
  const size_t wildcard = glob.find_first_of("*?");
  return wildcard != std::string::npos && glob.find('/', wildcard) == std::string::npos &&
         glob.find_first_of("[{\\") == std::string::npos;
}

class ObjectRequests final : public RequestMaker {
 public:
  ObjectRequests(const RemoteUrl& url, ObjectState state, std::shared_ptr<RemotePlace> place)
      : url_(url),
        store_(StoreOf(url.scheme)),
        state_(std::move(state)),
        place_(std::move(place)),
        address_(url.text()),
        shown_(ShownUrl(address_)) {}

  std::optional<absl::StatusOr<HttpRequest>> Make(uint64_t offset, uint64_t bytes, bool refused,
                                                  std::function<void()> ready) override {
    std::shared_ptr<const Credentials> credentials;
    if (place_->keeper != nullptr) {
      // Once for each request that was refused: the keeper knows whether others have come since.
      if (refused && used_ != nullptr) place_->keeper->Refused(std::exchange(used_, nullptr));
      std::optional<CredentialKeeper::Found> found = place_->keeper->Ask(std::move(ready));
      if (!found) return std::nullopt;
      if (!found->ok()) return found->status();
      credentials = **std::move(found);
    }
    HttpRequest request = store_.Object(url_, *place_);
    store_.Hold(state_, &request);
    request.headers.push_back(absl::StrCat("Range: bytes=", offset, "-", offset + bytes - 1));
    if (credentials != nullptr) store_.Authorise(*credentials, *place_, &request);
    used_ = std::move(credentials);
    return request;
  }

  bool TakeRedirect(const HttpResponse& response) override {
    const std::string region = store_.RegionIn(response);
    if (region.empty() || region == place_->region()) return false;
    place_->set_region(region);
    return true;
  }

  const ObjectState& state() const override { return state_; }
  const std::string& shown() const override { return shown_; }
  const std::string& address() const override { return address_; }

 private:
  const RemoteUrl url_;
  const ObjectStore& store_;
  const ObjectState state_;
  const std::shared_ptr<RemotePlace> place_;
  const std::string address_;
  const std::string shown_;
  std::shared_ptr<const Credentials> used_;  // the fetcher's thread's
};

}  // namespace

absl::StatusOr<HttpResponse> RemoteClient::Ask(
    const ObjectStore& store, RemotePlace& place, const std::string& shown,
    absl::FunctionRef<absl::StatusOr<HttpRequest>()> make) {
  PatientOptions options;
  options.takes_empty = true;
  std::shared_ptr<const Credentials> used;
  // Another thread may have learnt of a redirect since.
  std::string asked_region;
  const auto signed_request = [&](bool refused) -> absl::StatusOr<HttpRequest> {
    asked_region = place.region();
    absl::StatusOr<HttpRequest> request = make();
    if (!request.ok() || place.keeper == nullptr) return request;
    if (refused) place.keeper->Refused(used);
    CredentialKeeper::Found found = place.keeper->Wait();
    if (!found.ok()) {
      return absl::Status(found.status().code(),
                          absl::StrCat(found.status().message(), " (", shown, ")"));
    }
    used = *std::move(found);
    store.Authorise(*used, place, &*request);
    return request;
  };
  for (int redirects = 0;; ++redirects) {
    std::string region;
    absl::StatusOr<HttpResponse> response = PerformPatiently(
        shown, signed_request, options,
        [&](const HttpResponse& elsewhere) { region = store.RegionIn(elsewhere); });
    if (response.ok() || region.empty() || region == asked_region || redirects > 2) return response;
    place.set_region(region);
  }
}

absl::StatusOr<ObjectState> RemoteClient::Describe(const RemoteUrl& url) {
  const absl::StatusOr<std::shared_ptr<RemotePlace>> place = places_.PlaceOf(url);
  if (!place.ok()) return place.status();
  const ObjectStore& store = StoreOf(url.scheme);
  const std::string shown = ShownUrl(url.text());
  const absl::StatusOr<HttpResponse> response =
      Ask(store, **place, shown,
          [&]() -> absl::StatusOr<HttpRequest> { return store.Head(url, **place); });
  // Who asks for a byte and gets more than fits the memory was sent the whole object.
  if (url.is_http() && absl::IsResourceExhausted(response.status())) {
    return absl::UnimplementedError(absl::StrCat(
        "the server gives no ranges: expected a range of one byte, found the whole object (", shown,
        ")"));
  }
  if (!response.ok()) return response.status();
  return store.Describe(*response, shown);
}

absl::StatusOr<std::shared_ptr<RequestMaker>> RemoteClient::MakerOf(const RemoteUrl& url,
                                                                    ObjectState state) {
  const absl::StatusOr<std::shared_ptr<RemotePlace>> place = places_.PlaceOf(url);
  if (!place.ok()) return place.status();
  return std::make_shared<ObjectRequests>(url, std::move(state), *place);
}

absl::StatusOr<HttpResponse> RemoteClient::Send(
    const RemoteUrl& url, absl::FunctionRef<HttpRequest(HttpRequest object)> make) {
  const absl::StatusOr<std::shared_ptr<RemotePlace>> place = places_.PlaceOf(url);
  if (!place.ok()) return place.status();
  const ObjectStore& store = StoreOf(url.scheme);
  return Ask(store, **place, ShownUrl(url.text()),
             [&]() -> absl::StatusOr<HttpRequest> { return make(store.Object(url, **place)); });
}

absl::StatusOr<ListPage> RemoteClient::ListAll(const RemoteUrl& bucket, const std::string& prefix,
                                               const std::string& delimiter, RemotePlace& place) {
  const ObjectStore& store = StoreOf(bucket.scheme);
  const std::string shown = ShownUrl(bucket.text());
  ListPage all;
  std::string next;
  std::unordered_set<std::string> asked;
  do {
    const absl::StatusOr<HttpResponse> response = Ask(store, place, shown, [&] {
      return store.ListRequest(bucket, prefix, delimiter, next, place);
    });
    if (!response.ok()) return response.status();
    absl::StatusOr<ListPage> page = store.ParseList(response->body, shown);
    if (!page.ok()) return page.status();
    if (!page->next.empty() && !asked.insert(page->next).second) {
      return absl::DataLossError(absl::StrCat("a list goes round in a circle (", shown, ")"));
    }
    next = std::move(page->next);
    std::move(page->objects.begin(), page->objects.end(), std::back_inserter(all.objects));
    std::move(page->folders.begin(), page->folders.end(), std::back_inserter(all.folders));
    if (all.objects.size() + all.folders.size() > kObjectsMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a glob stands for more than ", kObjectsMax, " objects (", shown, ")"));
    }
  } while (!next.empty());
  return all;
}

absl::Status RemoteClient::ListLevel(const RemoteUrl& bucket, const std::string& done,
                                     const std::string& rest, RemotePlace& place,
                                     std::vector<FoundObject>* found) {
  const std::string literal = LiteralPrefix(rest);
  const bool goes_through = absl::StrContains(rest, "**");
  const size_t slash = goes_through ? std::string::npos : rest.find('/', literal.size());
  const absl::StatusOr<ListPage> page =
      ListAll(bucket, done + literal, goes_through ? "" : "/", place);
  if (!page.ok()) return page.status();
  if (slash == std::string::npos) {
    for (const RemoteObject& object : page->objects) {
      if (absl::EndsWith(object.key, "/") || !absl::StartsWith(object.key, done)) continue;
      if (!MatchesGlob(rest, object.key.substr(done.size()))) continue;
      RemoteUrl url = bucket;
      url.key = object.key;
      found->push_back({std::move(url), object.state});
    }
    return absl::OkStatus();
  }
  const std::string level = rest.substr(0, slash);
  for (const std::string& folder : page->folders) {
    if (!absl::EndsWith(folder, "/") || !absl::StartsWith(folder, done)) continue;
    if (!MatchesGlob(level, folder.substr(done.size(), folder.size() - done.size() - 1))) continue;
    absl::Status status = ListLevel(bucket, folder, rest.substr(slash + 1), place, found);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FoundObject>> RemoteClient::List(const RemoteUrl& glob) {
  std::vector<FoundObject> found;
  const bool is_glob = !glob.is_http() && glob.key.find_first_of("*?[{") != std::string::npos;
  const absl::StatusOr<std::shared_ptr<RemotePlace>> place = places_.PlaceOf(glob);
  if (!place.ok()) return place.status();
  absl::Status unlisted;
  if (is_glob && IsInItsList(glob.key)) {
    unlisted = ListLevel(glob, "", glob.key, **place, &found);
    // Who may not list may be allowed to look.
    if (!unlisted.ok() && !absl::IsPermissionDenied(unlisted)) return unlisted;
    if (unlisted.ok()) {
      for (FoundObject& one : found)
        if (one.url.key == glob.key) return std::vector<FoundObject>{std::move(one)};
      return found;
    }
  }
  // One that is there stands for itself, whatever it is called.
  absl::StatusOr<ObjectState> itself = Describe(glob);
  if (itself.ok()) return std::vector<FoundObject>{{glob, *std::move(itself)}};
  if (!unlisted.ok()) return unlisted;
  if (!is_glob || !absl::IsNotFound(itself.status())) {
    // Who may list may not be allowed to look at what is not there.
    if (!is_glob || !absl::IsPermissionDenied(itself.status())) return itself.status();
  }
  const absl::StatusOr<std::vector<std::string>> globs = ExpandBraces(glob.key);
  if (!globs.ok()) return globs.status();
  for (const std::string& one : *globs) {
    absl::Status status = ListLevel(glob, "", one, **place, &found);
    if (!status.ok()) return status;
  }
  return found;
}

}  // namespace penstock
