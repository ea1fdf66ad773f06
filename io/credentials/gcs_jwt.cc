#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "io/credentials/gcs_sources.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

std::string Base64(absl::string_view bytes) {
  std::string text = absl::WebSafeBase64Escape(bytes);
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

}  // namespace

absl::StatusOr<std::string> SignJwt(const std::string& claims, const std::string& key_id,
                                    const std::string& key) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(key.data(), static_cast<int>(key.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> parsed(
      PEM_read_bio_PrivateKey(bytes.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  if (parsed == nullptr || EVP_PKEY_base_id(parsed.get()) != EVP_PKEY_RSA)
    return absl::InvalidArgumentError("private_key: expected an RSA key in PEM");
  nlohmann::json head = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (!key_id.empty()) head["kid"] = key_id;
  const std::string text = absl::StrCat(Base64(head.dump()), ".", Base64(claims));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const auto* const data = reinterpret_cast<const unsigned char*>(text.data());
  size_t size = 0;
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, parsed.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, data, text.size()) != 1) {
    return absl::InternalError("cannot sign with private_key");
  }
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, data,
                     text.size()) != 1) {
    return absl::InternalError("cannot sign with private_key");
  }
  signature.resize(size);
  return absl::StrCat(text, ".", Base64(signature));
}

}  // namespace penstock
