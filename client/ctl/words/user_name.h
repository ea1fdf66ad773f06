// Users as id(1) shows them.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::ctl {

// "1000(anna)", or "1000" where this machine knows no name. It asks the system's list of users,
// which may lie on a network.
std::string UserName(uint32_t uid);

}  // namespace penstock::ctl
