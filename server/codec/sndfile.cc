#include "server/codec/sndfile.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::sndfile {
namespace {

constexpr const char* kLibrary = "libsndfile.so.1";

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<const Library*> Load() {
  // A failure is not kept: the library may be installed while the daemon runs.
  static std::mutex mutex;
  static Library functions;
  static bool is_loaded = false;
  const std::lock_guard lock(mutex);
  if (is_loaded) return &functions;
  const char* const given = std::getenv("PENSTOCK_SNDFILE");
  const std::string name = given != nullptr && *given != '\0' ? given : kLibrary;
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return absl::FailedPreconditionError(absl::StrCat(
        "FLAC, OGG and MP3 are decoded by libsndfile, which cannot be loaded; Debian's package is "
        "libsndfile1, and PENSTOCK_SNDFILE in the daemon's environment names the library's file "
        "if it lies elsewhere: ",
        reason != nullptr ? reason : name));
  }
  if (!Find(library, "sf_open_virtual", &functions.open_virtual) ||
      !Find(library, "sf_readf_float", &functions.readf_float) ||
      !Find(library, "sf_error", &functions.error) ||
      !Find(library, "sf_strerror", &functions.strerror) ||
      !Find(library, "sf_close", &functions.close)) {
    dlclose(library);
    return absl::FailedPreconditionError(
        absl::StrCat("the library has no functions of libsndfile: ", name));
  }
  is_loaded = true;
  return &functions;
}

}  // namespace penstock::sndfile
