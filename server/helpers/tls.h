// Certificates on both sides of a connection (TLS 1.2 or newer), or none of both.
//
// Threads:  a TlsContext is constant after construction; a TlsSession is one thread's.
// Owns:     OpenSSL's objects.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string authorities;

  bool any() const { return !certificate.empty() || !key.empty() || !authorities.empty(); }
};

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsSession = std::unique_ptr<SSL, FreeSsl>;

class TlsContext {
 public:
  enum class Side { kAsker, kHelper };
  // Reads the files; errors begin with `field`. PermissionDenied for a key that everybody may read.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Create(Side side, const std::string& field,
                                                            const TlsFiles& files);

  // Over a connected socket, before the handshake. `host`: of an asker, the name or number that the
  // helper's certificate is to be for.
  absl::StatusOr<TlsSession> NewSession(int socket, const std::string& host) const;

 private:
  explicit TlsContext(Side side, SSL_CTX* context) : side_(side), context_(context) {}

  const Side side_;
  const std::unique_ptr<SSL_CTX, FreeSsl> context_;
};

// Names of the certificate that the other side has shown: those of its subject's alternative names
// (DNS, URI, e-mail), else its common name.
std::vector<std::string> PeerNames(SSL* session);

// OpenSSL's oldest error of this thread, in words; the others are dropped.
std::string TlsError();

}  // namespace penstock
