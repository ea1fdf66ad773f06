// Where certificates of authorities are found.
#include "io/remote/authorities.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/remote/remote_environment.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("the named file comes first, then the bundle of the system at hand") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("authorities-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string debian = folder / "ca-certificates.crt", rhel = folder / "ca-bundle.crt",
                    suse = folder / "ca-bundle.pem";
  const std::vector<std::string> known = {debian, rhel, suse};
  // Nothing is there, as in a minimal container: libcurl says so when it is asked.
  CHECK(FindAuthorities("", known).empty());
  CHECK(FindAuthorities("/mine.pem", known) == "/mine.pem");
  std::ofstream(suse) << "x";
  CHECK(FindAuthorities("", known) == suse);
  std::ofstream(rhel) << "x";
  CHECK(FindAuthorities("", known) == rhel);
  // What libcurl looks for by itself is left to it.
  std::ofstream(debian) << "x";
  CHECK(FindAuthorities("", known).empty());
  CHECK(FindAuthorities("/mine.pem", known) == "/mine.pem");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a process' environment names the authorities") {
  Environment environment;
  environment.variable = [](const std::string& name) {
    return name == "SSL_CERT_FILE" ? std::string("/mine.pem") : std::string();
  };
  const auto options = RemoteOptionsOf(environment, /*has_owner=*/true);
  REQUIRE(options.ok());
  CHECK(options->authorities == "/mine.pem");
  CHECK(KnownAuthorities().front() == "/etc/ssl/certs/ca-certificates.crt");
}

}  // namespace
}  // namespace penstock
