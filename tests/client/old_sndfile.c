// libsndfile as its version 1.0.28 is: this machine's, without MP3 and Opus. python_sound_test.py
// gives it to a daemon.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

struct info {
  int64_t frames;
  int samplerate, channels, format, sections, seekable;
};
struct format_info {
  int format;
  const char *name, *extension;
};

static void* real(const char* name) {
  static void* library;
  if (library == NULL) library = dlopen("libsndfile.so.1", RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}

static int is_new(int format) {
  const int major = format & 0x0fff0000, subtype = format & 0xffff;
  return major == 0x230000 || subtype == 0x64 || (subtype >= 0x80 && subtype <= 0x82);
}

void* sf_open_virtual(void* calls, int mode, struct info* info, void* user) {
  void* (*open)(void*, int, struct info*, void*) = real("sf_open_virtual");
  int (*close)(void*) = real("sf_close");
  void* const file = open(calls, mode, info, user);
  if (file == NULL || !is_new(info->format)) return file;
  close(file);
  return NULL;
}

int sf_command(void* file, int command, void* data, int bytes) {
  int (*real_command)(void*, int, void*, int) = real("sf_command");
  const int result = real_command(file, command, data, bytes);
  struct format_info* const listed = data;
  if (command == 0x1000) strcpy(data, "libsndfile-1.0.28");
  // In the lists, PCM stands in their places.
  if ((command == 0x1031 || command == 0x1033) && is_new(listed->format)) listed->format = 2;
  return result;
}

int64_t sf_readf_float(void* file, float* to, int64_t frames) {
  return ((int64_t(*)(void*, float*, int64_t))real("sf_readf_float"))(file, to, frames);
}
int sf_error(void* file) { return ((int (*)(void*))real("sf_error"))(file); }
const char* sf_strerror(void* file) { return ((const char* (*)(void*))real("sf_strerror"))(file); }
int sf_close(void* file) { return ((int (*)(void*))real("sf_close"))(file); }
