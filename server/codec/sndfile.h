// libsndfile, loaded when it is first needed: no program links it, and nobody needs it for other
// data (docs/decisions/0149).
//
// The types are those of its interface 1, which has been the same since 2002:
// https://libsndfile.github.io/libsndfile/api.html.
//
// Threads:  safe from any thread; one SndFile belongs to one.
// Owns:     the library stays loaded.
// Cost:     some milliseconds for the first call, a lock for others.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock::sndfile {

struct SndFile;  // SNDFILE

struct Info {  // SF_INFO
  int64_t frames = 0;
  int32_t samplerate = 0;
  int32_t channels = 0;
  int32_t format = 0;
  int32_t sections = 0;
  int32_t seekable = 0;
};

struct VirtualFile {  // SF_VIRTUAL_IO
  int64_t (*get_filelen)(void* user);
  int64_t (*seek)(int64_t offset, int32_t whence, void* user);
  int64_t (*read)(void* to, int64_t bytes, void* user);
  int64_t (*write)(const void* from, int64_t bytes, void* user);
  int64_t (*tell)(void* user);
};

inline constexpr int32_t kRead = 0x10;              // SFM_READ
inline constexpr int32_t kFormatMask = 0x0fff0000;  // SF_FORMAT_TYPEMASK
inline constexpr int32_t kFlac = 0x170000, kOgg = 0x200000, kMpeg = 0x230000;
inline constexpr int32_t kVorbis = 0x60, kOpus = 0x64, kMpegLayer3 = 0x82;

struct Library {
  SndFile* (*open_virtual)(VirtualFile* file, int32_t mode, Info* info, void* user);
  int64_t (*readf_float)(SndFile* file, float* to, int64_t frames);
  int32_t (*error)(SndFile* file);
  const char* (*strerror)(SndFile* file);
  int32_t (*close)(SndFile* file);
  int32_t (*command)(SndFile* file, int32_t command, void* data, int32_t bytes);
};

// FailedPrecondition, with what to install, while there is none. PENSTOCK_SNDFILE in the
// environment names another file than libsndfile.so.1.
absl::StatusOr<const Library*> Load();

// FailedPrecondition, with what to install, where the library is too old to read this format, or
// was built without it: kFlac, kVorbis, kOpus or kMpegLayer3.
absl::Status CheckReads(const Library& library, int32_t format);

}  // namespace penstock::sndfile
