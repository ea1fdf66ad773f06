// simdjson's bare loops over JSON lines: files that were read before, `id` (int64) and `text`
// (string) of each line copied into batches of 256 in a private ring, and no hand-over. What
// json_lines and decode_json are compared with. Lines are found by memchr.
//
//   bench_loop_json [--whole] --files GLOB [--seconds S] [--threads N]
//
// By its On-Demand interface as its manual has it, which stops looking at a document behind the
// second field and lets pass what is wrong elsewhere. With --whole by its document tree: each
// document is checked to its end, as decode_json has it.
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}.
//
// The interface is compiled for AVX2 (CMakeLists.txt), since its strings and numbers take the
// instruction set of the compiler and not that of the machine.
#include <glob.h>
#include <simdjson.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench/loop_measure.h"

namespace penstock::bench {
namespace {

constexpr size_t kBatch = 256;
constexpr size_t kSlots = 2;
constexpr size_t kTextBytes = size_t{4} << 20;  // of a batch

std::vector<simdjson::padded_string> Load(const std::string& pattern) {
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) != 0) Die("no file", pattern);
  std::vector<simdjson::padded_string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    simdjson::padded_string file;
    if (simdjson::padded_string::load(found.gl_pathv[i]).get(file) != simdjson::SUCCESS)
      Die("cannot read", found.gl_pathv[i]);
    files.push_back(std::move(file));
  }
  globfree(&found);
  return files;
}

// The two fields of a line, behind which `left` bytes may be read from its beginning on. The text
// stays until the next call.
class OnDemand {
 public:
  bool Decode(const char* line, size_t length, size_t left, int64_t* id, std::string_view* text) {
    simdjson::ondemand::document document;
    return parser_.iterate(line, length, left).get(document) == simdjson::SUCCESS &&
           document["id"].get_int64().get(*id) == simdjson::SUCCESS &&
           document["text"].get_string().get(*text) == simdjson::SUCCESS;
  }

 private:
  simdjson::ondemand::parser parser_;
};
class Whole {
 public:
  bool Decode(const char* line, size_t length, size_t, int64_t* id, std::string_view* text) {
    simdjson::dom::element document;
    return parser_.parse(line, length, /*realloc_if_needed=*/false).get(document) ==
               simdjson::SUCCESS &&
           document["id"].get_int64().get(*id) == simdjson::SUCCESS &&
           document["text"].get_string().get(*text) == simdjson::SUCCESS;
  }

 private:
  simdjson::dom::parser parser_;
};

// Every `step`th file from `first` on, again and again.
template <typename Decoder>
void Work(const std::vector<simdjson::padded_string>& files, size_t first, size_t step,
          LoopCounter& counter, const std::atomic<bool>& stop) {
  constexpr size_t kSlotBytes = kBatch * sizeof(int64_t) + kBatch * sizeof(uint64_t) + kTextBytes;
  uint8_t* const ring = AllocateRing(kSlots * kSlotBytes);
  Decoder decoder;
  size_t row = 0, slot = 0, used = 0;
  while (true) {
    for (size_t i = first; i < files.size(); i += step) {
      const simdjson::padded_string& file = files[i];
      const char* line = file.data();
      const char* const end = line + file.size();
      while (line < end) {
        const char* const line_end = static_cast<const char*>(std::memchr(line, '\n', end - line));
        const size_t length = (line_end == nullptr ? end : line_end) - line;
        uint8_t* const begin = ring + slot * kSlotBytes;
        const size_t left = end - line + simdjson::SIMDJSON_PADDING;
        int64_t id = 0;
        std::string_view text;
        if (!decoder.Decode(line, length, left, &id, &text) || text.size() > kTextBytes) {
          Die("no document of id and text", std::string(line, length));
        }
        if (row == kBatch || used + text.size() > kTextBytes) {
          counter.Add(row);
          row = used = 0;
          slot = (slot + 1) % kSlots;
          if (stop.load(std::memory_order_relaxed)) return;
        }
        std::memcpy(begin + row * sizeof(id), &id, sizeof(id));
        const uint64_t size = text.size();
        std::memcpy(begin + (kBatch + row) * sizeof(size), &size, sizeof(size));
        std::memcpy(begin + 2 * kBatch * sizeof(size) + used, text.data(), size);
        used += size;
        ++row;
        line += length + 1;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  const bool is_whole = argc > 1 && std::string_view(argv[1]) == "--whole";
  if (is_whole) {
    ++argv;
    --argc;
  }
  const LoopFlags flags = ParseFlags(argc, argv, /*has_dtype=*/false);
  const std::vector<simdjson::padded_string> files = Load(flags.files);
  if (files.size() < static_cast<size_t>(flags.threads))
    Die("fewer files than threads", flags.files);
  Measure(flags, [&](int thread, LoopCounter& counter, const std::atomic<bool>& stop) {
    (is_whole ? Work<Whole> : Work<OnDemand>)(files, thread, flags.threads, counter, stop);
  });
}
