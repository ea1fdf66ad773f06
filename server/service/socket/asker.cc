#include "server/service/socket/asker.h"

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace penstock {

std::string NameOf(const Identity& who) {
  if (!who.by_certificate) return absl::StrCat("user ", who.uid);
  if (who.certificate_names.empty()) return "a certificate without a name";
  return absl::StrCat("certificate ", who.certificate_names.front().substr(0, 128));
}

std::optional<uint32_t> ShownUid(uid_t uid) {
  if (uid == static_cast<uid_t>(-1) || uid == kCertificateUid) return std::nullopt;
  return uid;
}

std::string Asker::By() const { return name.empty() ? "" : absl::StrCat(" by ", ShownText(name)); }

Asker AskerOf(const Identity& who) {
  if (who.by_certificate) return {std::nullopt, NameOf(who)};
  return {ShownUid(who.uid), NameOf(who)};
}

}  // namespace penstock
