#include "server/helpers/known_helpers.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/new_thread.h"

namespace penstock {
namespace {

// Names are looked up again every ten seconds; a file of addresses is read every second.
constexpr std::chrono::seconds kLookUpAgain{10};
constexpr std::chrono::seconds kReadAgain{1};
constexpr size_t kMostFileBytes = 64 << 10;

struct HostAndPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostAndPort> Split(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  HostAndPort parts;
  if (colon != text.npos && absl::SimpleAtoi(text.substr(colon + 1), &port)) {
    parts = {text.substr(0, colon), text.substr(colon + 1)};
    if (parts.host.size() > 1 && parts.host.front() == '[' && parts.host.back() == ']')
      parts.host = parts.host.substr(1, parts.host.size() - 2);
    else if (parts.host.find(':') != text.npos)
      parts.host.clear();
  }
  if (port > 0 && port < 65536 && !parts.host.empty()) return parts;
  return absl::InvalidArgumentError(
      absl::StrCat("helpers.address: expected a name or number and a port, as 10.0.0.7:9466, or "
                   "the absolute path of a file with such lines, found \"",
                   text.substr(0, 128), "\""));
}

// All addresses of one host; none where there is no such name, or nobody answers.
std::vector<HelperAddress> LookUp(const HostAndPort& named, bool is_number_only) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  if (is_number_only) hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  std::vector<HelperAddress> all;
  if (getaddrinfo(named.host.c_str(), named.port.c_str(), &hints, &found) != 0) return all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char number[NI_MAXHOST] = "";
    if (getnameinfo(one->ai_addr, one->ai_addrlen, number, sizeof(number), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    HelperAddress address;
    address.shown = one->ai_family == AF_INET6 ? absl::StrCat("[", number, "]:", named.port)
                                               : absl::StrCat(number, ":", named.port);
    address.host = named.host;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(std::move(address));
  }
  freeaddrinfo(found);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.shown < b.shown; });
  return all;
}

bool IsFile(const std::string& text) {
  return text.size() > 1 && text[0] == '/' && text.find('\0') == text.npos;
}

// What a file of addresses says now; "" where there is none.
std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

// Its lines that are addresses.
std::vector<HostAndPort> AddressesIn(const std::string& text) {
  std::vector<HostAndPort> all;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StatusOr<HostAndPort> parts = Split(std::string(absl::StripAsciiWhitespace(line)));
    if (parts.ok()) all.push_back(*std::move(parts));
  }
  return all;
}

}  // namespace

bool HelperAddress::is_loopback() const {
  if (storage.ss_family == AF_INET6) {
    const auto* const six = reinterpret_cast<const sockaddr_in6*>(&storage);
    return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
  }
  const auto* const four = reinterpret_cast<const sockaddr_in*>(&storage);
  return (ntohl(four->sin_addr.s_addr) >> 24) == 127;
}

struct KnownHelpers::State {
  std::vector<HostAndPort> names;         // constant
  std::vector<HelperAddress> of_numbers;  // constant
  std::vector<std::string> files;         // constant
  std::atomic<uint64_t> version{1};
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<HelperAddress> all;  // under mutex
  bool is_over = false;            // under mutex

  // Those of the configuration, and of files that say this.
  std::vector<HelperAddress> LookUpAll(const std::string& text) const {
    std::vector<HelperAddress> found = of_numbers;
    std::vector<HostAndPort> all_names = names;
    for (HostAndPort& one : AddressesIn(text)) all_names.push_back(std::move(one));
    for (const HostAndPort& name : all_names) {
      for (HelperAddress& address : LookUp(name, /*is_number_only=*/false)) {
        if (found.size() < kMost && std::find(found.begin(), found.end(), address) == found.end())
          found.push_back(std::move(address));
      }
    }
    return found;
  }

  void LookAgainAndAgain() {
    std::string text;
    auto next_look_up = std::chrono::steady_clock::now();
    while (true) {
      std::string now;
      for (const std::string& path : files) absl::StrAppend(&now, ReadText(path), "\n");
      std::vector<HelperAddress> found;
      const bool looks_up = now != text || std::chrono::steady_clock::now() >= next_look_up;
      if (looks_up) {
        text = std::move(now);
        found = LookUpAll(text);
        next_look_up = std::chrono::steady_clock::now() + kLookUpAgain;
      }
      std::unique_lock<std::mutex> lock(mutex);
      if (looks_up && found != all) {
        all = std::move(found);
        version.fetch_add(1);
      }
      const std::chrono::seconds pause = files.empty() ? kLookUpAgain : kReadAgain;
      if (changed.wait_for(lock, pause, [this] { return is_over; })) return;
    }
  }
};

absl::Status KnownHelpers::Check(const std::vector<std::string>& addresses) {
  if (addresses.size() > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("helpers.address: ", addresses.size(), " of them, expected at most ", kMost));
  }
  for (const std::string& text : addresses) {
    if (IsFile(text)) continue;
    if (absl::Status status = Split(text).status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<KnownHelpers>> KnownHelpers::Create(
    const std::vector<std::string>& addresses) {
  auto state = std::make_shared<State>();
  if (absl::Status status = Check(addresses); !status.ok()) return status;
  for (const std::string& text : addresses) {
    if (IsFile(text)) {
      state->files.push_back(text);
      continue;
    }
    absl::StatusOr<HostAndPort> parts = Split(text);
    if (!parts.ok()) return parts.status();
    std::vector<HelperAddress> number = LookUp(*parts, /*is_number_only=*/true);
    if (number.empty()) state->names.push_back(*std::move(parts));
    for (HelperAddress& address : number) state->of_numbers.push_back(std::move(address));
  }
  state->all = state->of_numbers;
  if (!state->names.empty() || !state->files.empty()) {
    absl::StatusOr<std::thread> thread =
        NewThread("helpers' names", [state] { state->LookAgainAndAgain(); });
    if (!thread.ok()) return thread.status();
    // It may hang in a look-up or a read, and has all that it needs.
    thread->detach();
  }
  return std::unique_ptr<KnownHelpers>(new KnownHelpers(std::move(state)));
}

KnownHelpers::~KnownHelpers() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->is_over = true;
  state_->changed.notify_all();
}

uint64_t KnownHelpers::version() const { return state_->version.load(std::memory_order_relaxed); }

std::vector<HelperAddress> KnownHelpers::List() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->all;
}

}  // namespace penstock
