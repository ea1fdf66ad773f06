#include "server/engine/tensor/world.h"

#include "absl/strings/str_cat.h"

namespace penstock {

absl::Status World::Check() const {
  if (hosts >= 1 && hosts <= kMaxHosts && host < hosts) return absl::OkStatus();
  if (hosts < 1 || hosts > kMaxHosts) {
    return absl::InvalidArgumentError(
        absl::StrCat("world: expected 1 to ", kMaxHosts, " hosts, found ", hosts));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "world: of ", hosts, " hosts the numbers are 0 to ", hosts - 1, ", found host ", host));
}

}  // namespace penstock
