// What a daemon, or the command, is told of addresses: which may be named, where they lead, and
// whose credentials are used.
//
// Threads:  values; any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/http/address_rules.h"

namespace penstock {

// For addresses that begin with `prefix`; the longest that fits counts.
struct RemotePrefix {
  std::string prefix;  // "s3://", "s3://bucket/train/", "https://data.example/"
  // "http://127.0.0.1:9000": a server in the place of the provider's, asked by path; "": the
  // provider's
  std::string endpoint;
  std::string region;  // "": the environment's where credentials are ambient, else us-east-1

  // One of these; none: anonymous.
  bool is_ambient = false;  // the environment's, as the provider's tools find them
  std::string profile;      // of ~/.aws
  std::string process;      // as credential_process
  std::string access_key_id;
  std::string secret_access_key_file;  // its first line
  std::string google_file;             // of credentials of Google
};

// Where specs may have something written to.
struct WriteRights {
  bool all = false;                  // wherever they may read
  std::vector<std::string> folders;  // else below these: "s3://bucket/made"
};

struct RemoteOptions {
  bool is_off = false;  // no address is read
  // Prefixes of addresses that specs may name; none: all.
  std::vector<std::string> allowed;
  std::string allowed_by = "PENSTOCK_REMOTE_ALLOW";  // where that is said
  // Prefixes that may also lead to this machine, a link-local network or a metadata service.
  std::vector<std::string> unguarded;
  std::vector<RemotePrefix> prefixes;
  // What fits no prefix: credentials of the environment, or none.
  bool is_ambient = false;
  Reach reach = Reach::kPublic;
  WriteRights writes;
  uint64_t memory_bytes = uint64_t{512} << 20;  // for what is near
  int requests_max = 256;                       // at a time; 4 to 256
  int64_t give_up_ms = 120'000;                 // without another byte
  std::string cache_folder;                     // where what was fetched is kept; "": nowhere
  uint64_t cache_bytes = 0;                     // of it at most; 0: half of what is free
  bool trusts_etags = false;  // equal ETags are equal content, so that nobody looks at the ends
  std::string proxy;
  std::string authorities;  // a file of certificates; "": the system's
};

}  // namespace penstock
