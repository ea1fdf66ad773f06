#include "client/ctl/terminal/terminal.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/shown_text.h"

namespace penstock::ctl {
namespace {

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

int DescriptorOf(void* cookie) { return static_cast<int>(reinterpret_cast<intptr_t>(cookie)); }

ssize_t WriteShown(void* cookie, const char* text, size_t size) {
  // 0 is an error to stdio.
  return WriteAll(DescriptorOf(cookie), ShownText({text, size})) ? static_cast<ssize_t>(size) : 0;
}

void Guard(FILE** stream, int fd, int buffering) {
  if (isatty(fd) != 1) return;
  FILE* const guarded = fopencookie(reinterpret_cast<void*>(intptr_t{fd}), "w",
                                    {nullptr, WriteShown, nullptr, nullptr});
  if (guarded == nullptr) return;
  setvbuf(guarded, nullptr, buffering, BUFSIZ);
  *stream = guarded;
}

}  // namespace

void GuardTerminals() {
  Guard(&stdout, STDOUT_FILENO, _IOLBF);
  // Whole lines: what is written byte by byte could not be judged.
  Guard(&stderr, STDERR_FILENO, _IOLBF);
}

bool Draw(FILE* stream, const std::string& text) {
  if (std::fflush(stream) != 0) return false;
  return WriteAll(stream == stdout ? STDOUT_FILENO : STDERR_FILENO, text);
}

}  // namespace penstock::ctl
