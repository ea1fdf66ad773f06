// The bare loop that files at addresses are compared with: libcurl's multi interface on one thread,
// blocks of a fixed size, so many under way, into memory that is used again and again. Nothing is
// parsed, kept or handed on.
//
//     bench_loop_fetch IN_FLIGHT BLOCK_BYTES URL…      one JSON line: bytes, seconds, cpu_seconds

#include <curl/curl.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Range {
  std::string url;
  uint64_t first = 0;
  uint64_t bytes = 0;
};

struct Slot {
  CURL* curl = nullptr;
  std::unique_ptr<char[]> memory;
  uint64_t at = 0;
  uint64_t want = 0;
  uint64_t room = 0;
};

size_t Take(char* data, size_t size, size_t count, void* user) {
  auto* const slot = static_cast<Slot*>(user);
  const size_t bytes = size * count;
  if (slot->at + bytes > slot->room) return 0;
  std::memcpy(slot->memory.get() + slot->at, data, bytes);
  slot->at += bytes;
  return bytes;
}

// A handle that trusts $SSL_CERT_FILE, where that names certificates.
CURL* NewHandle() {
  CURL* const curl = curl_easy_init();
  const char* const authorities = std::getenv("SSL_CERT_FILE");
  if (authorities != nullptr && *authorities != '\0')
    curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
  return curl;
}

uint64_t SizeOf(const std::string& url) {
  CURL* const curl = NewHandle();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  curl_off_t bytes = 0;
  if (curl_easy_perform(curl) != CURLE_OK ||
      curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes) != CURLE_OK ||
      bytes <= 0) {
    std::fprintf(stderr, "no size of %s\n", url.c_str());
    std::exit(1);
  }
  curl_easy_cleanup(curl);
  return static_cast<uint64_t>(bytes);
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Begin(CURLM* multi, Slot* slot, const Range& range) {
  slot->at = 0;
  slot->want = range.bytes;
  const std::string text =
      std::to_string(range.first) + "-" + std::to_string(range.first + range.bytes - 1);
  curl_easy_setopt(slot->curl, CURLOPT_URL, range.url.c_str());
  curl_easy_setopt(slot->curl, CURLOPT_RANGE, text.c_str());
  curl_multi_add_handle(multi, slot->curl);
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fprintf(stderr, "bench_loop_fetch IN_FLIGHT BLOCK_BYTES URL…\n");
    return 2;
  }
  const auto in_flight = static_cast<size_t>(std::atoi(words[1]));
  const auto block = static_cast<uint64_t>(std::atoll(words[2]));
  curl_global_init(CURL_GLOBAL_DEFAULT);
  std::vector<Range> ranges;
  for (int i = 3; i < count; ++i) {
    const uint64_t size = SizeOf(words[i]);
    for (uint64_t first = 0; first < size; first += block)
      ranges.push_back({words[i], first, std::min(block, size - first)});
  }
  std::vector<Slot> slots(std::min(in_flight, ranges.size()));
  CURLM* const multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 256L);
  for (Slot& slot : slots) {
    slot.curl = NewHandle();
    slot.memory.reset(new char[block]);
    slot.room = block;
    curl_easy_setopt(slot.curl, CURLOPT_BUFFERSIZE, 512L << 10);
    curl_easy_setopt(slot.curl, CURLOPT_WRITEFUNCTION, Take);
    curl_easy_setopt(slot.curl, CURLOPT_WRITEDATA, &slot);
    curl_easy_setopt(slot.curl, CURLOPT_PRIVATE, &slot);
  }
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = CpuSeconds();
  size_t next = 0;
  size_t under_way = 0;
  uint64_t bytes = 0;
  for (Slot& slot : slots) {
    Begin(multi, &slot, ranges[next++]);
    ++under_way;
  }
  while (under_way > 0) {
    int running = 0;
    curl_multi_perform(multi, &running);
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Slot* slot = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
      if (message->data.result != CURLE_OK || slot->at != slot->want) {
        std::fprintf(stderr, "a range failed: %s\n", curl_easy_strerror(message->data.result));
        return 1;
      }
      bytes += slot->at;
      curl_multi_remove_handle(multi, slot->curl);
      --under_way;
      if (next < ranges.size()) {
        Begin(multi, slot, ranges[next++]);
        ++under_way;
      }
    }
    if (under_way > 0) curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("{\"bytes\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n",
              static_cast<unsigned long long>(bytes), took.count(), CpuSeconds() - cpu_begin);
  for (Slot& slot : slots) curl_easy_cleanup(slot.curl);
  curl_multi_cleanup(multi);
}
