#include "server/helpers/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// What comes in one system call: records of 16 KiB.
constexpr size_t kReadBytes = size_t{256} << 10;
constexpr long kGatheredBytes = 256 << 10;
constexpr char kCiphers[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

absl::Status CheckKey(const std::string& field, const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0)
    return absl::NotFoundError(absl::StrCat(field, ".key: cannot read ", path));
  if ((about.st_mode & S_IRWXO) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(field, ".key: everybody may read it; chmod 600 ", path));
}

bool IsNumber(const std::string& host) {
  in6_addr six;
  in_addr four;
  return inet_pton(AF_INET, host.c_str(), &four) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

// Records that are written are gathered, until the end of what is written (BIO_flush) or until they
// fill the buffer: each would be a system call.
bool SetSocket(SSL* session, int socket) {
  if (SSL_set_rfd(session, socket) != 1) return false;
  BIO* const gathered = BIO_new(BIO_f_buffer());
  BIO* const written = BIO_new_socket(socket, BIO_NOCLOSE);
  if (gathered == nullptr || written == nullptr ||
      BIO_set_write_buffer_size(gathered, kGatheredBytes) != 1) {
    BIO_free(gathered);
    BIO_free(written);
    return false;
  }
  SSL_set0_wbio(session, BIO_push(gathered, written));
  return true;
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

}  // namespace

std::string TlsError() {
  char text[256] = "the connection was closed";
  if (const unsigned long error = ERR_get_error(); error != 0)
    ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return text;
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Create(Side side, const std::string& field,
                                                               const TlsFiles& files) {
  const char* const authorities = side == Side::kHelper ? ".client_authorities" : ".authorities";
  const bool is_helper = side == Side::kHelper;
  if (absl::Status status = CheckKey(field, files.key); !status.ok()) return status;
  ERR_clear_error();
  SSL_CTX* const made = SSL_CTX_new(is_helper ? TLS_server_method() : TLS_client_method());
  if (made == nullptr) return absl::ResourceExhaustedError(absl::StrCat(field, ": ", TlsError()));
  std::shared_ptr<TlsContext> context(new TlsContext(side, made));
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(made, 1);
  SSL_CTX_set_default_read_buffer_len(made, kReadBytes);
  // Of those that TLS 1.3 has, in another order: the first one takes a quarter less time than the
  // second, which is OpenSSL's first.
  SSL_CTX_set_ciphersuites(made, kCiphers);
  // Nothing of one connection holds for another.
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(made, 0);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER | (is_helper ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  const auto refuse = [&](const char* name, const std::string& path) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, name, ": cannot use ", path, ": ", TlsError()));
  };
  if (SSL_CTX_use_certificate_chain_file(made, files.certificate.c_str()) != 1)
    return refuse(".certificate", files.certificate);
  if (SSL_CTX_use_PrivateKey_file(made, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return refuse(".key", files.key);
  if (SSL_CTX_load_verify_locations(made, files.authorities.c_str(), nullptr) != 1)
    return refuse(authorities, files.authorities);
  return context;
}

absl::StatusOr<TlsSession> TlsContext::NewSession(int socket, const std::string& host) const {
  TlsSession session(SSL_new(context_.get()));
  if (session == nullptr || !SetSocket(session.get(), socket))
    return absl::ResourceExhaustedError(TlsError());
  if (side_ == Side::kHelper) {
    SSL_set_accept_state(session.get());
    return session;
  }
  SSL_set_connect_state(session.get());
  if (IsNumber(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str());
  } else {
    SSL_set1_host(session.get(), host.c_str());
    SSL_set_tlsext_host_name(session.get(), host.c_str());
  }
  return session;
}

std::vector<std::string> PeerNames(SSL* session) {
  std::vector<std::string> names;
  const std::unique_ptr<X509, FreeX509> certificate(SSL_get1_peer_certificate(session));
  if (certificate == nullptr) return names;
  const std::unique_ptr<GENERAL_NAMES, FreeX509> all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS || name->type == GEN_URI || name->type == GEN_EMAIL)
      names.push_back(TextOf(name->d.ia5));
  }
  if (!names.empty()) return names;
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (place >= 0)
    names.push_back(TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place))));
  return names;
}

}  // namespace penstock
