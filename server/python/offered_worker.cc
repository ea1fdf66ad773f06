#include "server/python/offered_worker.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "nlohmann/json.hpp"

namespace penstock::python {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEnded = "ended ";
constexpr std::string_view kRefused = "refused ";

// Of an answer of that kind, what it says; nothing of any other.
std::optional<std::string> Said(std::string_view kind, std::string_view answer) {
  if (!answer.starts_with(kind) || answer.size() == kind.size()) return std::nullopt;
  return ShownText(answer.substr(kind.size()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerProcess>> OfferedWorker::Start(
    const FunctionFile& function, const std::string& configuration, const Offer& offer) {
  std::unique_ptr<OfferedWorker> worker(new OfferedWorker);
  const absl::StatusOr<ring::Descriptor> theirs = worker->Open(configuration);
  if (!theirs.ok()) return theirs.status();
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no socket for a Python worker process: ", std::strerror(errno), "; see ulimit -n"));
  }
  worker->keeper_ = ring::Descriptor(ends[0]);
  const ring::Descriptor keepers(ends[1]);
  const Json asked = {{"path", function.path},
                      {"code", function.code},
                      {"configuration_bytes", configuration.size()}};
  const std::array<int, 5> files = {worker->desk().inputs(), worker->desk().outputs(),
                                    theirs->get(), worker->stack_file(), keepers.get()};
  if (!offer.Ask(asked.dump(), files)) {
    return absl::UnavailableError(
        absl::StrCat("a process of user ", offer.user(),
                     " that offers workers takes no request: ", std::strerror(errno)));
  }
  return worker;
}

OfferedWorker::~OfferedWorker() { Kill(); }

void OfferedWorker::Tell(const char* what) {
  if (!ended_.empty()) return;
  // What does not fit was told often enough.
  [[maybe_unused]] const ssize_t sent =
      send(keeper_.get(), what, std::strlen(what), MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::string OfferedWorker::Wait() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::seconds(1);
  while (ended_.empty()) {
    pollfd look = {keeper_.get(), POLLIN, 0};
    const auto left = duration_cast<milliseconds>(until - steady_clock::now());
    if (left.count() <= 0) return "no end within a second";
    if (poll(&look, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[kMaxAnswerBytes];
    iovec part = {buffer, sizeof(buffer)};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    const ssize_t got = ReceivePacket(keeper_.get(), &header);
    if (got < 0 && errno == EAGAIN) continue;
    const std::string_view answer(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    if (const auto how = Said(kEnded, answer)) {
      ended_ = *how;
    } else {
      was_withdrawn_ = true;
      ended_ = Said(kRefused, answer).value_or("the process that offered it has gone");
    }
  }
  return ended_;
}

}  // namespace penstock::python
