#include <pugixml.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "io/credentials/aws_sources.h"
#include "io/http/perform.h"
#include "io/http/uri_encode.h"

namespace penstock {
namespace {

constexpr char kWhat[] = "AssumeRoleWithWebIdentity";

}  // namespace

absl::StatusOr<Credentials> AwsFromWebIdentity(const Environment& environment) {
  const std::string file = environment("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string role = environment("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return absl::NotFoundError("no web identity is set up");
  const absl::StatusOr<std::string> token = environment.read_file(file);
  if (!token.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("AWS_WEB_IDENTITY_TOKEN_FILE: ", file, " cannot be read"));
  std::string endpoint = environment("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) {
    const std::string region = AwsRegion(environment, "");
    endpoint = region.empty() ? "https://sts.amazonaws.com"
                              : absl::StrCat("https://sts.", region, ".amazonaws.com");
  }
  std::string session = environment("AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "penstock";
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint + "/";
  request.reach = Reach::kAnywhere;
  request.authorities = environment.authorities;
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = absl::StrCat(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=", EncodeQuery(role),
      "&RoleSessionName=", EncodeQuery(session),
      "&WebIdentityToken=", EncodeQuery(std::string(absl::StripAsciiWhitespace(*token))));
  const absl::StatusOr<HttpResponse> response =
      PerformPatiently(kWhat, [&request](bool) { return request; });
  if (!response.ok()) return response.status();
  pugi::xml_document document;
  document.load_buffer(response->body.data(), response->body.size());
  const pugi::xml_node found = document.child("AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  Credentials credentials;
  credentials.source = "web identity";
  credentials.access_key_id = found.child_value("AccessKeyId");
  credentials.secret_access_key = found.child_value("SecretAccessKey");
  credentials.session_token = found.child_value("SessionToken");
  credentials.expires_s = ParseExpiry(found.child_value("Expiration"));
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty())
    return absl::DataLossError(absl::StrCat(kWhat, ": the answer has no credentials"));
  return credentials;
}

}  // namespace penstock
