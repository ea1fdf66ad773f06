#include "io/remote/authorities.h"

#include <unistd.h>

namespace penstock {

const std::vector<std::string>& KnownAuthorities() {
  static const auto* const kKnown = new std::vector<std::string>{
      "/etc/ssl/certs/ca-certificates.crt",
      "/etc/pki/tls/certs/ca-bundle.crt",
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
      "/etc/ssl/ca-bundle.pem",
      "/var/lib/ca-certificates/ca-bundle.pem",
  };
  return *kKnown;
}

std::string FindAuthorities(const std::string& named, const std::vector<std::string>& known) {
  if (!named.empty()) return named;
  for (const std::string& file : known) {
    if (access(file.c_str(), R_OK) == 0) return &file == &known.front() ? "" : file;
  }
  return "";
}

}  // namespace penstock
