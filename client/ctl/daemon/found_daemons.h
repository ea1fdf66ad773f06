// The daemons of this user that nobody has named: private ones of Python processes and of commands,
// and those that the processes of a job share. They lie in folders of their own in the place for
// temporary files.
//
// Threads:  any; no state.
// Cost:     a look through those places, and a connection to each socket that is there.
#pragma once

#include <string>
#include <vector>

namespace penstock::ctl {

// The sockets at which something listens, in the order of their paths; that of the default daemon
// is none of them.
std::vector<std::string> FindDaemons();

}  // namespace penstock::ctl
