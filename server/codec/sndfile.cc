#include "server/codec/sndfile.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::sndfile {
namespace {

constexpr const char* kLibrary = "libsndfile.so.1";

// What is said of a library that lacks, or lacks something.
constexpr const char* kElsewhere =
    "PENSTOCK_SNDFILE in the daemon's environment names the library's file if it lies elsewhere";

struct FormatInfo {  // SF_FORMAT_INFO
  int32_t format = 0;
  const char* name = nullptr;
  const char* extension = nullptr;
};

struct Needed {
  int32_t format;
  const char* name;
  const char* library;
};
constexpr const char* kBuiltWithIt = "one that was built with it (Debian's package libsndfile1)";
constexpr Needed kNeeded[] = {
    {kFlac, "FLAC", kBuiltWithIt},
    {kVorbis, "Vorbis", kBuiltWithIt},
    {kOpus, "Opus", "version 1.0.29 or later (libsndfile1 of Debian 11 or Ubuntu 22.04)"},
    {kMpegLayer3, "MP3", "version 1.1 or later (libsndfile1 of Debian 12 or Ubuntu 24.04)"},
};

// Whether one of the library's lists has the format.
bool Lists(const Library& library, int32_t format) {
  // SFC_GET_FORMAT_MAJOR_COUNT and _MAJOR, _SUBTYPE_COUNT and _SUBTYPE.
  const int32_t count_command = (format & kFormatMask) != 0 ? 0x1030 : 0x1032;
  int32_t count = 0;
  library.command(nullptr, count_command, &count, sizeof(count));
  for (int32_t i = 0; i < count; ++i) {
    FormatInfo info{.format = i};
    if (library.command(nullptr, count_command + 1, &info, sizeof(info)) == 0 &&
        info.format == format)
      return true;
  }
  return false;
}

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
        "libsndfile1, and ",
        kElsewhere, ": ", reason != nullptr ? reason : name));
  }
  if (!Find(library, "sf_open_virtual", &functions.open_virtual) ||
      !Find(library, "sf_readf_float", &functions.readf_float) ||
      !Find(library, "sf_error", &functions.error) ||
      !Find(library, "sf_strerror", &functions.strerror) ||
      !Find(library, "sf_close", &functions.close) ||
      !Find(library, "sf_command", &functions.command)) {
    dlclose(library);
    return absl::FailedPreconditionError(
        absl::StrCat("the library has no functions of libsndfile: ", name));
  }
  is_loaded = true;
  return &functions;
}

absl::Status CheckReads(const Library& library, int32_t format) {
  if (Lists(library, format)) return absl::OkStatus();
  constexpr int32_t kGetVersion = 0x1000;  // SFC_GET_LIB_VERSION
  char version[128] = "";
  library.command(nullptr, kGetVersion, version, sizeof(version) - 1);
  const auto* const needed = std::find_if(std::begin(kNeeded), std::end(kNeeded),
                                          [&](const Needed& one) { return one.format == format; });
  return absl::FailedPreconditionError(
      absl::StrCat("the daemon's libsndfile (", version, ") cannot read ", needed->name,
                   ": install ", needed->library, " and start the daemon again; ", kElsewhere));
}

}  // namespace penstock::sndfile
