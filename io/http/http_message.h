// One request and its answer, as values.
//
// Threads:  values; any.
// Owns:     its texts.
// Limits:   an answer's head of 64 KiB and 256 headers, a body that is kept in memory of body_bytes_max.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "io/http/address_rules.h"

namespace penstock {

// The keys that libcurl signs a request with (AWS Signature Version 4).
struct AwsSigning {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // "": none
  std::string region;
  std::string service;
};

inline constexpr size_t kBodyBytesMax = size_t{64} << 20;

struct HttpRequest {
  std::string method = "GET";
  std::string url;                   // encoded
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  std::optional<AwsSigning> signing;
  Reach reach = Reach::kPublic;
  std::string proxy;  // "": none
  std::string
      authorities;  // a file of certificates (PEM) in the place of the system's; "": the system's
  size_t body_bytes_max = kBodyBytesMax;
  int64_t timeout_ms = 30'000;  // of the whole exchange; 0: only stalls end it
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // The last header of that name (in lower case); "" where there is none.
  absl::string_view Header(absl::string_view name) const;
};

// Takes one line of an answer's head; a status line begins the headers anew.
void TakeHeaderLine(absl::string_view line, HttpResponse* response);

// What "Content-Range: bytes 5-9/100" says.
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  std::optional<uint64_t> total;
  bool is_unsatisfied = false;  // "bytes */100"
};
std::optional<ContentRange> ParseContentRange(absl::string_view value);

}  // namespace penstock
