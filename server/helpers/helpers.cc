#include "server/helpers/helpers.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/helpers/lendable.h"
#include "server/helpers/lender.h"

namespace penstock {
namespace {

constexpr int kBacklog = 128;

TlsFiles FilesOf(const v1::HelperOptions& options) {
  return {options.certificate(), options.key(), options.authorities()};
}

TlsFiles FilesOf(const v1::ServeOptions& options) {
  return {options.certificate(), options.key(), options.client_authorities()};
}

absl::Status CheckFiles(const std::string& field, const TlsFiles& files, const char* authorities,
                        bool plaintext) {
  if (!files.any()) return absl::OkStatus();
  if (plaintext) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".plaintext: expected either certificates or plaintext, found both"));
  }
  const struct {
    const char* name;
    const std::string& path;
  } all[] = {
      {".certificate", files.certificate}, {".key", files.key}, {authorities, files.authorities}};
  for (const auto& file : all) {
    if (!file.path.empty() && file.path[0] == '/' && file.path.find('\0') == file.path.npos)
      continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, file.name, ": expected an absolute path, found \"", file.path, "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(const char* field, int value, int most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " out of range: ", value, " is not in [1, ", most, "]"));
}

// The address of an interface of this machine.
absl::StatusOr<HelperAddress> ServeAddress(const std::string& text) {
  absl::StatusOr<std::unique_ptr<KnownHelpers>> known = KnownHelpers::Create({text});
  if (known.ok() && (*known)->List().size() == 1) return (*known)->List().front();
  return absl::InvalidArgumentError(
      absl::StrCat("serve.address: expected numbers and a port, as 10.0.0.7:9466, found \"",
                   text.substr(0, 128), "\""));
}

}  // namespace

absl::Status CompleteHelpers(v1::HelperOptions* options) {
  if (options->steps_at_a_time() == 0) options->set_steps_at_a_time(2);
  absl::Status status = CheckNumber("helpers.steps_at_a_time", options->steps_at_a_time(),
                                    static_cast<int>(ServedStream::kMostSteps));
  status.Update(CheckFiles("helpers", FilesOf(*options), ".authorities", options->plaintext()));
  if (!status.ok()) return status;
  return KnownHelpers::Check({options->address().begin(), options->address().end()});
}

absl::Status CompleteServe(v1::ServeOptions* options) {
  if (options->max_streams() == 0) options->set_max_streams(16);
  absl::Status status = CheckNumber("serve.max_streams", options->max_streams(), 256);
  status.Update(
      CheckFiles("serve", FilesOf(*options), ".client_authorities", options->plaintext()));
  for (const std::string& name : options->certificate_names()) {
    if (name.empty())
      status.Update(absl::InvalidArgumentError("serve.certificate_names: a name is empty"));
  }
  if (options->address().empty() || !status.ok()) return status;
  const absl::StatusOr<HelperAddress> address = ServeAddress(options->address());
  if (!address.ok()) return address.status();
  if (FilesOf(*options).any() || options->plaintext() || address->is_loopback())
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "serve.address: ", options->address(),
      " is not the loopback's: expected certificate, key and client_authorities, or plaintext: "
      "true where whoever can connect may read what this daemon's user may"));
}

absl::StatusOr<std::shared_ptr<Helpers>> Helpers::Create(const v1::HelperOptions& options) {
  if (options.address().empty()) return std::shared_ptr<Helpers>();
  absl::StatusOr<std::unique_ptr<KnownHelpers>> known =
      KnownHelpers::Create({options.address().begin(), options.address().end()});
  if (!known.ok()) return known.status();
  std::shared_ptr<const TlsContext> tls;
  if (FilesOf(options).any()) {
    absl::StatusOr<std::shared_ptr<TlsContext>> made =
        TlsContext::Create(TlsContext::Side::kAsker, "helpers", FilesOf(options));
    if (!made.ok()) return made.status();
    tls = *std::move(made);
  }
  return std::shared_ptr<Helpers>(new Helpers(options, *std::move(known), std::move(tls)));
}

std::unique_ptr<StepLender> Helpers::Make(std::shared_ptr<const Plan> plan,
                                          const LentStream& stream) {
  if (const std::string why = WhyNotLendable(plan->spec()); !why.empty()) {
    if (stream.notice != nullptr) stream.notice(absl::StrCat("no helper makes steps of it: ", why));
    return nullptr;
  }
  return std::make_unique<Lender>(known_, tls_, options_.plaintext(), options_.steps_at_a_time(),
                                  *plan, stream);
}

absl::StatusOr<std::unique_ptr<HelperServer>> Serve(const v1::ServeOptions& options,
                                                    ServedStream::Means means) {
  if (options.address().empty()) return std::unique_ptr<HelperServer>();
  const absl::StatusOr<HelperAddress> address = ServeAddress(options.address());
  if (!address.ok()) return address.status();
  if (FilesOf(options).any()) {
    absl::StatusOr<std::shared_ptr<TlsContext>> made =
        TlsContext::Create(TlsContext::Side::kHelper, "serve", FilesOf(options));
    if (!made.ok()) return made.status();
    means.tls = *std::move(made);
  }
  means.certificate_names = {options.certificate_names().begin(),
                             options.certificate_names().end()};
  ring::Descriptor socket(
      ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return absl::ErrnoToStatus(errno, "serve.address: cannot make a socket");
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address->storage), address->size) !=
          0 ||
      listen(socket.get(), kBacklog) != 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("serve.address: cannot listen at ", options.address()));
  }
  return HelperServer::Start(std::move(socket), std::move(means), options.max_streams());
}

}  // namespace penstock
