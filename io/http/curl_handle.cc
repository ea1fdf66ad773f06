#include "io/http/curl_handle.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace {

constexpr long kConnectMs = 10'000;
// A connection on which less than this comes for so long is taken for dead.
constexpr long kStalledBytesPerS = 1;
constexpr long kStalledS = 10;
// A server that does not say whether a body may be sent gets it behind this.
constexpr long kMaySendMs = 200;

// Where a proxy connects, its own rules decide.
Reach ReachOf(const HttpRequest& request) {
  return request.proxy.empty() ? request.reach : Reach::kAnywhere;
}

curl_socket_t OpenSocket(void* user, curlsocktype, curl_sockaddr* address) {
  auto* const kept = static_cast<CurlRequest*>(user);
  if (!MayConnect(address->addr, ReachOf(kept->request))) {
    kept->was_refused = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

bool MayAsk(const char* address, Reach reach) {
  sockaddr_in in4 = {};
  in4.sin_family = AF_INET;
  if (inet_pton(AF_INET, address, &in4.sin_addr) == 1)
    return MayConnect(reinterpret_cast<const sockaddr&>(in4), reach);
  sockaddr_in6 in6 = {};
  in6.sin6_family = AF_INET6;
  return inet_pton(AF_INET6, address, &in6.sin6_addr) == 1 &&
         MayConnect(reinterpret_cast<const sockaddr&>(in6), reach);
}

// A connection that was kept was judged for the request that it was opened for, which may go further than this one.
int BeforeRequest(void* user, char* address, char*, int, int) {
  auto* const kept = static_cast<CurlRequest*>(user);
  if (MayAsk(address, ReachOf(kept->request))) return CURL_PREREQFUNC_OK;
  kept->was_refused = true;
  return CURL_PREREQFUNC_ABORT;
}

size_t TakeHeader(char* data, size_t size, size_t count, void* user) {
  TakeHeaderLine({data, size * count}, &static_cast<CurlRequest*>(user)->response);
  return size * count;
}

size_t TakeBody(char* data, size_t size, size_t count, void* user) {
  auto* const kept = static_cast<CurlRequest*>(user);
  const size_t bytes = size * count;
  if (kept->response.body.size() + bytes > kept->request.body_bytes_max) {
    kept->body_is_too_long = true;
    return 0;
  }
  kept->response.body.append(data, bytes);
  return bytes;
}

void Add(CurlRequest* kept, const std::string& header) {
  curl_slist* const longer = curl_slist_append(kept->headers.get(), header.c_str());
  if (longer == nullptr) return;
  kept->headers.release();
  kept->headers.reset(longer);
}

std::string HexSha256(const std::string& text) {
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  EVP_Digest(text.data(), text.size(), sum, &bytes, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(sum), bytes});
}

void Sign(CURL* curl, CurlRequest* kept) {
  const AwsSigning& keys = *kept->request.signing;
  const std::string scheme = absl::StrCat("aws:amz:", keys.region, ":", keys.service);
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, scheme.c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, keys.access_key_id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, keys.secret_access_key.c_str());
  // libcurl 7.88 sends no hash of the body, which every S3 server asks for; a header that is given is signed. What is written has one, so that no
  // server takes other bytes for it, with or without TLS.
  if (keys.service == "s3") {
    const bool is_written = kept->request.method != "GET" && kept->request.method != "HEAD";
    Add(kept, absl::StrCat("X-Amz-Content-Sha256: ", is_written ? HexSha256(kept->request.body)
                                                                : std::string("UNSIGNED-PAYLOAD")));
  }
  if (!keys.session_token.empty())
    Add(kept, absl::StrCat("X-Amz-Security-Token: ", keys.session_token));
}

}  // namespace

void InitCurl() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
}

void Prepare(CURL* curl, CurlRequest* kept) {
  const HttpRequest& request = kept->request;
  kept->response = {};
  kept->headers.reset();
  kept->was_refused = false;
  kept->body_is_too_long = false;
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  // Whoever gives a transfer up does not wait for the resolver's thread, which a name server that is silent holds for minutes.
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStalledBytesPerS);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStalledS);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_ms));
  // "" also keeps libcurl from looking into the environment.
  curl_easy_setopt(curl, CURLOPT_PROXY, request.proxy.c_str());
  if (!request.authorities.empty())
    curl_easy_setopt(curl, CURLOPT_CAINFO, request.authorities.c_str());
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, OpenSocket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, kept);
  curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, BeforeRequest);
  curl_easy_setopt(curl, CURLOPT_PREREQDATA, kept);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, kept);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, kept);
  curl_easy_setopt(curl, CURLOPT_PRIVATE, kept);
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    // libcurl asks first whether it may send more than 1 MiB. A header "Expect:", which says that it should not, it would sign and not send.
    curl_easy_setopt(curl, CURLOPT_EXPECT_100_TIMEOUT_MS, kMaySendMs);
  }
  for (const std::string& header : request.headers) Add(kept, header);
  Add(kept, "User-Agent: penstock");
  if (request.signing) Sign(curl, kept);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, kept->headers.get());
}

}  // namespace penstock
