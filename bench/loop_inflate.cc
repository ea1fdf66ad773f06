// ISA-L's bare inflate of gzip shards: mapped files, each inflated from its beginning to its end by
// one thread at a time, and nothing done with the bytes. What reading compressed shards is compared
// with.
//
//   bench_loop_inflate --files GLOB --records N [--seconds S] [--threads N]
//
// N is the number of records in all the files: what is inflated is counted as a part of them.
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}.
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/loop_measure.h"
#include "bench/loop_records.h"

namespace penstock::bench {
namespace {

// In the processor's own cache, as a reader that hands its bytes on at once would have it.
constexpr size_t kPieceBytes = size_t{256} << 10;

// Calls `done(bytes)` for every piece, until it returns false.
template <typename Done>
void Inflate(const MappedFile& file, uint8_t* out, const Done& done) {
  auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  state->crc_flag = ISAL_GZIP;
  state->next_in = const_cast<uint8_t*>(file.data());
  state->avail_in = static_cast<uint32_t>(file.size());
  do {
    state->next_out = out;
    state->avail_out = kPieceBytes;
    if (isal_inflate(state.get()) != ISAL_DECOMP_OK) Die("damaged file", file.path());
    if (!done(kPieceBytes - state->avail_out)) return;
  } while (state->block_state != ISAL_BLOCK_FINISH);
}

uint64_t TakeRecords(int* argc, char** argv) {
  for (int i = 1; i + 1 < *argc; i += 2) {
    if (std::string(argv[i]) != "--records") continue;
    const uint64_t records = std::strtoull(argv[i + 1], nullptr, 10);
    std::copy(argv + i + 2, argv + *argc, argv + i);
    *argc -= 2;
    if (records > 0) return records;
  }
  Die("how many records are in the files?", "--records N");
}

void Run(const LoopFlags& flags, uint64_t records) {
  std::vector<MappedFile> files;
  for (const std::string& path : MatchFiles(flags.files)) files.emplace_back(path);
  std::vector<uint8_t> out(kPieceBytes);
  uint64_t plain_bytes = 0;
  for (const MappedFile& file : files) {
    if (file.size() > UINT32_MAX) Die("larger than 4 GiB", file.path());
    Inflate(file, out.data(), [&](size_t bytes) {
      plain_bytes += bytes;
      return true;
    });
  }
  if (plain_bytes == 0) Die("nothing in the files", flags.files);
  const double records_per_byte = static_cast<double>(records) / static_cast<double>(plain_bytes);
  std::atomic<size_t> next_file{0};
  Measure(flags, [&](int, LoopCounter& counter, const std::atomic<bool>& stop) {
    std::vector<uint8_t> piece(kPieceBytes);
    while (!stop.load(std::memory_order_relaxed)) {
      double part = 0;  // of a record that is not counted yet
      Inflate(files[next_file.fetch_add(1) % files.size()], piece.data(), [&](size_t bytes) {
        part += static_cast<double>(bytes) * records_per_byte;
        const uint64_t whole = static_cast<uint64_t>(part);
        part -= static_cast<double>(whole);
        counter.Add(whole);
        return !stop.load(std::memory_order_relaxed);
      });
    }
  });
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  const uint64_t records = penstock::bench::TakeRecords(&argc, argv);
  penstock::bench::Run(penstock::bench::ParseFlags(argc, argv, /*has_dtype=*/false), records);
}
