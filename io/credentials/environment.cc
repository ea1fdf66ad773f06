#include "io/credentials/environment.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr std::streamsize kFileBytesMax = 1 << 20;

}  // namespace

std::string Environment::InHome(absl::string_view path) const {
  return absl::StrCat(variable("HOME"), "/", path);
}

Environment ProcessEnvironment() {
  Environment environment;
  environment.variable = [](const std::string& name) {
    const char* const value = getenv(name.c_str());
    return std::string(value == nullptr ? "" : value);
  };
  environment.read_file = [](const std::string& path) -> absl::StatusOr<std::string> {
    std::ifstream file(path, std::ios::binary);
    if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
    std::string text(kFileBytesMax, '\0');
    file.read(text.data(), kFileBytesMax);
    text.resize(static_cast<size_t>(file.gcount()));
    return text;
  };
  return environment;
}

}  // namespace penstock
