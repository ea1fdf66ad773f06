#include "client/ctl/ending_signals.h"

#include <initializer_list>

namespace penstock::ctl {

sigset_t BlockEndingSignals(sigset_t* before) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(&taken, number);
  }
  pthread_sigmask(SIG_BLOCK, &taken, before);
  return taken;
}

}  // namespace penstock::ctl
