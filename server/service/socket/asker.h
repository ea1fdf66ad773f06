// Who asked for what happens to a pipeline: for its events, its description and lines of the log.
//
// Threads:  values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "server/service/socket/access.h"

namespace penstock {

// Whose calls with a certificate are, by number: the kernel gives it to nobody.
inline constexpr uid_t kCertificateUid = UINT32_MAX - 1;

// "user 1000", or "certificate trainer.example".
std::string NameOf(const Identity& who);

// The number by which a user is told; nullopt: nobody knows, or the caller came with a certificate.
std::optional<uint32_t> ShownUid(uid_t uid);

struct Asker {
  std::optional<uint32_t> uid = std::nullopt;
  std::string name = {};  // as NameOf() says; "": the daemon does it by itself

  // " by user 1000" behind what was done; "" where nobody asked.
  std::string By() const;
};
Asker AskerOf(const Identity& who);

}  // namespace penstock
