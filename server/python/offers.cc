#include "server/python/offers.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::python {
namespace {

constexpr size_t kMaxFiles = 8;
// Some sixty requests, with what the kernel keeps for each.
constexpr int kMaxUnreadBytes = 64 << 10;

bool IsPacketSocket(int file) {
  int type = 0, domain = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return false;
  size = sizeof(domain);
  return getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
         type == SOCK_SEQPACKET;
}

}  // namespace

bool Offer::has_gone() const {
  pollfd looks[2] = {{socket_.get(), POLLRDHUP, 0}, {process_.get(), POLLIN, 0}};
  if (poll(looks, 2, 0) <= 0) return false;
  return (looks[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0 || looks[1].revents != 0;
}

bool Offer::Ask(const std::string& text, std::span<const int> files) const {
  if (files.size() > kMaxFiles) return false;
  // Descriptors that nobody takes count for this user, whom the kernel lets send only so many: others' come by here, too.
  int unread = 0;
  if (ioctl(socket_.get(), SIOCOUTQ, &unread) == 0 && unread > kMaxUnreadBytes) {
    errno = EAGAIN;
    return false;
  }
  iovec part = {const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFiles * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(files.size_bytes());
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(files.size_bytes());
  std::memcpy(CMSG_DATA(head), files.data(), files.size_bytes());
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

void Offers::DropGone() {
  std::erase_if(offers_, [](const auto& offer) { return offer->has_gone(); });
}

absl::Status Offers::Add(uid_t user, ring::Descriptor socket, ring::Descriptor process) {
  if (!socket || !IsPacketSocket(socket.get())) {
    return absl::InvalidArgumentError(
        "an offer of workers comes with a socket of packets (AF_UNIX, SOCK_SEQPACKET), and this "
        "one with none");
  }
  if (user == kUnnamedUser) {
    return absl::PermissionDeniedError(absl::StrCat(
        "user ", user, " offers workers, which is what the kernel calls all users that it cannot ",
        "name in here: start penstockd where the trainer's user has a number of his own"));
  }
  const std::lock_guard lock(mutex_);
  DropGone();
  const auto of_user = static_cast<size_t>(std::count_if(
      offers_.begin(), offers_.end(), [user](const auto& offer) { return offer->user() == user; }));
  if (of_user >= kMaxOffersOfUser || offers_.size() >= kMaxOffers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many processes offer workers: ", of_user, " of user ", user, ", limit ",
                     kMaxOffersOfUser, ", and ", offers_.size(), " in all, limit ", kMaxOffers));
  }
  offers_.insert(offers_.begin(), std::make_shared<const Offer>(next_++, user, std::move(socket),
                                                                std::move(process)));
  // Under the mutex, so that nobody is told who has just stopped listening.
  for (const auto& [number, listener] : listeners_)
    if (listener.user == user) listener.told();
  return absl::OkStatus();
}

Offers::Sharing Offers::Of(uid_t user) {
  const std::lock_guard lock(mutex_);
  DropGone();
  Sharing found;
  std::copy_if(offers_.begin(), offers_.end(), std::back_inserter(found),
               [user](const auto& offer) { return offer->user() == user; });
  return found;
}

std::shared_ptr<void> Offers::Listen(uid_t user, std::function<void()> told) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_++;
  listeners_[number] = {user, std::move(told)};
  return {nullptr, [this, number](void*) {
            const std::lock_guard end_lock(mutex_);
            listeners_.erase(number);
          }};
}

Offers& TheOffers() {
  static auto* const offers = new Offers;
  return *offers;
}

}  // namespace penstock::python
