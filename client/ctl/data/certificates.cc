#include "client/ctl/data/certificates.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace penstock::ctl {
namespace {

constexpr char kAuthority[] = "authority";
// X.509's limit for the name of a subject.
constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostFileBytes = 1 << 20;
// Clocks of two machines may differ by so much.
constexpr long kClocksDifferSeconds = 3600;
constexpr long kDaySeconds = 86400;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(BIO* bytes) const { BIO_free(bytes); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using Bytes = std::unique_ptr<BIO, Free>;

struct Pair {
  Certificate certificate;
  Key key;
};

absl::Status OpenSslError(const std::string& what) {
  char text[256] = "unknown error";
  if (const unsigned long error = ERR_get_error(); error != 0)
    ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", text));
}

bool IsNumber(const std::string& name) {
  in6_addr six;
  in_addr four;
  return inet_pton(AF_INET, name.c_str(), &four) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &six) == 1;
}

// A name stands in an extension's text and in a file's name.
std::string WrongName(const std::string& name) {
  const bool is_good = !name.empty() && name.size() <= kMostNameBytes && name != kAuthority &&
                       name.front() != '.' && name.front() != '-' &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                                c == '-' || c == '_' || c == ':';
                       });
  if (is_good && (IsNumber(name) || name.find(':') == name.npos)) return "";
  return absl::StrCat(
      "expected the name or number of a host, as helper.train or 10.0.0.7, found \"", name, "\"");
}

std::string PathOf(const std::string& folder, const std::string& name, const char* end) {
  return absl::StrCat(folder, "/", name, end);
}

// Another file is renamed over it, so that whoever reads it finds a whole one.
absl::Status Write(const std::string& path, BIO* bytes, mode_t mode) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bytes, &data);
  const std::string partial = path + ".partial";
  unlink(partial.c_str());
  const int file = open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", partial));
  const bool is_written = write(file, data, static_cast<size_t>(size)) == size;
  const int error = errno;
  if (close(file) == 0 && is_written && rename(partial.c_str(), path.c_str()) == 0)
    return absl::OkStatus();
  unlink(partial.c_str());
  return absl::ErrnoToStatus(is_written ? errno : error, absl::StrCat("cannot write ", path));
}

absl::Status WritePair(const std::string& folder, const std::string& name, const Pair& pair) {
  const Bytes key(BIO_new(BIO_s_mem())), certificate(BIO_new(BIO_s_mem()));
  if (key == nullptr || certificate == nullptr ||
      PEM_write_bio_PrivateKey(key.get(), pair.key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1 ||
      PEM_write_bio_X509(certificate.get(), pair.certificate.get()) != 1) {
    return OpenSslError("cannot write a certificate");
  }
  absl::Status status = Write(PathOf(folder, name, ".key"), key.get(), 0600);
  if (status.ok()) status = Write(PathOf(folder, name, ".pem"), certificate.get(), 0644);
  return status;
}

absl::StatusOr<std::string> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostFileBytes, '\0');
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

absl::StatusOr<Pair> ReadAuthority(const std::string& folder) {
  const std::string path = PathOf(folder, kAuthority, ".pem");
  const absl::StatusOr<std::string> certificate = Read(path);
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> key = Read(PathOf(folder, kAuthority, ".key"));
  if (!key.ok()) return key.status();
  const Bytes certificate_bytes(
      BIO_new_mem_buf(certificate->data(), static_cast<int>(certificate->size())));
  const Bytes key_bytes(BIO_new_mem_buf(key->data(), static_cast<int>(key->size())));
  Pair pair;
  // "": a key with a password is not asked for one.
  char no_password[] = "";
  pair.certificate.reset(PEM_read_bio_X509(certificate_bytes.get(), nullptr, nullptr, nullptr));
  pair.key.reset(PEM_read_bio_PrivateKey(key_bytes.get(), nullptr, nullptr, no_password));
  if (pair.certificate == nullptr || pair.key == nullptr ||
      X509_check_private_key(pair.certificate.get(), pair.key.get()) != 1) {
    return OpenSslError(absl::StrCat("not an authority and its key: ", path));
  }
  return pair;
}

absl::Status AddExtension(X509* certificate, X509* issuer, int number, const std::string& text) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, number, text.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1)
    return OpenSslError(absl::StrCat("cannot write the extension ", text));
  return absl::OkStatus();
}

// `issuer`: null for an authority, which signs itself.
absl::StatusOr<Pair> Make(const std::string& name, const Pair* issuer, int days) {
  Pair made;
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  X509* const one = made.certificate.get();
  if (made.key == nullptr || one == nullptr) return OpenSslError("cannot make a key");
  uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1)
    return OpenSslError("cannot draw a number");
  const auto* const text = reinterpret_cast<const unsigned char*>(name.data());
  X509* const signer = issuer == nullptr ? one : issuer->certificate.get();
  bool is_good = X509_set_version(one, X509_VERSION_3) == 1 &&
                 ASN1_INTEGER_set_uint64(X509_get_serialNumber(one), serial | 1) == 1 &&
                 X509_gmtime_adj(X509_getm_notBefore(one), -kClocksDifferSeconds) != nullptr &&
                 X509_time_adj_ex(X509_getm_notAfter(one), days, 0, nullptr) != nullptr &&
                 X509_set_pubkey(one, made.key.get()) == 1 &&
                 X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_UTF8, text,
                                            static_cast<int>(name.size()), -1, 0) == 1;
  is_good = is_good && X509_set_issuer_name(one, X509_get_subject_name(signer)) == 1;
  if (!is_good) return OpenSslError("cannot make a certificate");
  absl::Status status;
  const auto add = [&](int number, const std::string& value) {
    if (status.ok()) status = AddExtension(one, signer, number, value);
  };
  if (issuer == nullptr) {
    add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    add(NID_key_usage, "critical,keyCertSign,cRLSign");
    add(NID_subject_key_identifier, "hash");
  } else {
    add(NID_basic_constraints, "critical,CA:FALSE");
    add(NID_key_usage, "critical,digitalSignature");
    // A daemon may help others and be helped.
    add(NID_ext_key_usage, "serverAuth,clientAuth");
    add(NID_subject_alt_name, absl::StrCat(IsNumber(name) ? "IP:" : "DNS:", name));
    add(NID_authority_key_identifier, "keyid:always");
  }
  if (!status.ok()) return status;
  EVP_PKEY* const key = issuer == nullptr ? made.key.get() : issuer->key.get();
  if (X509_sign(one, key, EVP_sha256()) == 0) return OpenSslError("cannot sign a certificate");
  return made;
}

struct CertificatesArguments {
  std::string folder;
  std::vector<std::string> names;
  int days = 365;
};

absl::Status MakeAll(const CertificatesArguments& arguments) {
  std::error_code error;
  std::filesystem::create_directories(arguments.folder, error);
  if (error)
    return absl::UnknownError(
        absl::StrCat("cannot make ", arguments.folder, ": ", error.message()));
  Pair authority;
  if (std::filesystem::exists(PathOf(arguments.folder, kAuthority, ".pem"), error) ||
      std::filesystem::exists(PathOf(arguments.folder, kAuthority, ".key"), error)) {
    absl::StatusOr<Pair> read = ReadAuthority(arguments.folder);
    if (!read.ok()) return read.status();
    authority = *std::move(read);
  } else {
    absl::StatusOr<Pair> made = Make("penstock authority", nullptr, arguments.days);
    if (!made.ok()) return made.status();
    authority = *std::move(made);
    if (absl::Status status = WritePair(arguments.folder, kAuthority, authority); !status.ok())
      return status;
    std::printf("wrote %s\n", PathOf(arguments.folder, kAuthority, ".pem").c_str());
  }
  for (const std::string& name : arguments.names) {
    const absl::StatusOr<Pair> made = Make(name, &authority, arguments.days);
    if (!made.ok()) return made.status();
    if (absl::Status status = WritePair(arguments.folder, name, *made); !status.ok()) return status;
    std::printf("wrote %s\n", PathOf(arguments.folder, name, ".pem").c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddCertificates(Command root) {
  Command command = root.AddCommand(
      "certificates",
      "Make an authority, and certificates that it signs, for daemons' connections");
  auto arguments = std::make_shared<CertificatesArguments>();
  command.Add("folder", &arguments->folder, "Where authority.pem is, or will be, with its key")
      .Required();
  command.Add("names", &arguments->names, "Names or numbers of hosts: a certificate and a key each")
      .Checked(WrongName);
  command.Add("--days", &arguments->days, "How long they hold").InRange(1, 36500).WithDefault();
  command.Runs([arguments] {
    const absl::Status status = MakeAll(*arguments);
    if (status.ok()) return 0;
    std::fprintf(stderr, "penstock certificates: %s\n", std::string(status.message()).c_str());
    return 1;
  });
}

}  // namespace penstock::ctl
