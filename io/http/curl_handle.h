// libcurl's handles with the settings that all requests of this project have.
//
// HTTP/1.1 with connections that are kept, no redirect followed, no name of a proxy taken from the environment, certificates checked, paths
// sent as they stand, and every address judged before it is connected to and before each request over a connection that was kept
// (address_rules.h).
//
// Threads:  a handle belongs to one thread at a time; what Prepare() is given stays where it is until the transfer is over.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>

#include "io/http/http_message.h"

namespace penstock {

struct CloseCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using CurlHandle = std::unique_ptr<CURL, CloseCurl>;

struct FreeCurlList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, FreeCurlList>;

// What of a request libcurl only points to.
struct CurlRequest {
  HttpRequest request;
  HttpResponse response;  // its head; the body where nobody else takes it
  CurlList headers;
  bool was_refused = false;  // an address by address_rules.h
  bool body_is_too_long = false;
};

// Once a process, by whoever is first.
void InitCurl();

// Sets a new or reset handle up for `kept->request`; its body goes to `kept->response.body`, unless who calls sets another place.
void Prepare(CURL* curl, CurlRequest* kept);

}  // namespace penstock
