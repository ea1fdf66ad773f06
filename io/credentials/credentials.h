// What proves to an object store who asks.
//
// Threads:  values; any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

struct Credentials {
  std::string source;  // "environment", "profile default", …: may be shown
  // Keys of AWS, or of what speaks its protocol.
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;
  // A token of OAuth 2.
  std::string bearer;
  int64_t expires_s = 0;  // Unix time; 0: never

  bool is_anonymous() const { return access_key_id.empty() && bearer.empty(); }
};

// Waits for other machines and processes. NotFound: this source is not set up.
using CredentialSource = std::function<absl::StatusOr<Credentials>()>;

// The first that is set up. An error of one that is set up is the answer.
CredentialSource FirstOf(std::vector<CredentialSource> sources);

// The source behind all others: nobody. It ends, so that the others are asked again: a machine's
// metadata service may have been late.
absl::StatusOr<Credentials> Anonymous();

// RFC 3339, as in "2026-11-28T22:00:00Z"; 0 where it is none.
int64_t ParseExpiry(const std::string& text);

}  // namespace penstock
