#include "client/ctl/words/user_name.h"

#include <pwd.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::ctl {

std::string UserName(uint32_t uid) {
  std::vector<char> text(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
    return absl::StrCat(uid);
  return absl::StrCat(uid, "(", found->pw_name, ")");
}

}  // namespace penstock::ctl
