// Where Google's own tools find credentials, each in a file of its name. Source: "How Application Default Credentials works" and the
// protocols that it names (RFC 7523, RFC 8693).
//
// Threads:  any.
#pragma once

#include <string>

#include "io/credentials/credentials.h"
#include "io/credentials/environment.h"

namespace penstock {

// A file of credentials, of any of the three kinds below: GOOGLE_APPLICATION_CREDENTIALS, else gcloud's own
// (~/.config/gcloud/application_default_credentials.json). `path`: "" is one of these.
absl::StatusOr<Credentials> GcsFromFile(const Environment& environment, const std::string& path);

// By what stands in such a file. Of a key of a service account: a token that it signs (RS256).
absl::StatusOr<Credentials> GcsFromServiceAccount(const Environment& environment,
                                                  const std::string& json);
absl::StatusOr<Credentials> GcsFromAuthorisedUser(const Environment& environment,
                                                  const std::string& json);
// Of a token in another file, which is exchanged (workload identity federation).
absl::StatusOr<Credentials> GcsFromExternalAccount(const Environment& environment,
                                                   const std::string& json);

// GCE_METADATA_HOST, else metadata.google.internal: the machine's account.
absl::StatusOr<Credentials> GcsFromMachine(const Environment& environment);

// All of them; nobody at all is anonymous.
CredentialSource GcsChain(Environment environment, std::string file);

// The answer of an OAuth 2 server; `now_s`: when it was asked. DataLoss for anything else, which is not shown.
absl::StatusOr<Credentials> ParseOauthToken(const std::string& text, const std::string& what,
                                            int64_t now_s);

// What such a server answers to an encoded form; waits for it.
absl::StatusOr<Credentials> AskForToken(const Environment& environment, const std::string& server,
                                        const std::string& form, const std::string& what);

// A signed JSON Web Token of these claims. `key`: PEM.
absl::StatusOr<std::string> SignJwt(const std::string& claims, const std::string& key_id,
                                    const std::string& key);

}  // namespace penstock
