// The signals by which somebody ends a command: SIGINT, SIGTERM and SIGHUP.
//
// Threads:  the first thread, before others start, as they are to leave the signals to whoever waits for them.
#pragma once

#include <signal.h>

namespace penstock::ctl {

// Those that whoever started the program has not had ignored (nohup): one that is ignored would be told all the same while it is blocked. They are
// blocked from now on; `*before` is what was blocked until then.
sigset_t BlockEndingSignals(sigset_t* before);

}  // namespace penstock::ctl
