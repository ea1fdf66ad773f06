#include "client/c/signs_of_life.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "ring/attach.h"
#include "ring/futex.h"

namespace penstock_client {
namespace {

using penstock::ring::AttachRequest;
using penstock::ring::MonotonicNs;
using penstock::ring::Operation;

constexpr int kWaitMs = 100;
// What one wait may count: more is a pause of this process, or of the machine.
constexpr uint64_t kCountedNsMax = 500'000'000;
constexpr uint64_t kAsksWithinSilence = 4;

}  // namespace

SignsOfLife::SignsOfLife(std::string socket_path, uint64_t silence_ns_max)
    : socket_path_(std::move(socket_path)),
      silence_ns_max_(silence_ns_max),
      seen_ns_(MonotonicNs()) {}

bool SignsOfLife::Wait(int socket) {
  if (!beside_ && silence_ns_ >= silence_ns_max_ / kAsksWithinSilence) Ask();
  // A descriptor below zero is left out.
  pollfd entries[] = {{socket, POLLIN, 0}, {beside_.get(), POLLIN, 0}};
  poll(entries, 2, kWaitMs);
  if (entries[0].revents != 0) return true;
  const uint64_t now_ns = MonotonicNs();
  silence_ns_ += std::min(now_ns - seen_ns_, kCountedNsMax);
  seen_ns_ = now_ns;
  if (entries[1].revents != 0) Hear();
  return false;
}

void SignsOfLife::Ask() {
  AttachRequest request = penstock::ring::EncodeRequest("", "");
  request.operation = static_cast<uint32_t>(Operation::kProbe);
  int made = -1;
  // Where it cannot be asked now, it is tried again with the next wait: a queue that stays full is
  // no sign.
  if (penstock::ring::StartAttach(socket_path_, request, 0, &made).ok())
    beside_ = penstock::ring::Descriptor(made);
}

// An answer, or a hang-up: a daemon that has ended hangs up on the request itself too.
void SignsOfLife::Hear() {
  beside_ = penstock::ring::Descriptor();
  silence_ns_ = 0;
}

}  // namespace penstock_client
