// Reading compressed shards, beside ISA-L's bare inflate of the same bytes.
//
//   bench_inflate [FILE.gz]        without a file: records of 250 bytes that compress to a half

#include <benchmark/benchmark.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/file/crc32c.h"
#include "io/inflate/byte_stream.h"
#include "io/record/record_stream.h"

namespace penstock {
namespace {

constexpr size_t kSyntheticRecords = 400000;

class MemoryFile final : public RandomAccessFile {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return bytes_.size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    const size_t count = std::min<uint64_t>(out.size(), bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + offset, count);
    return count;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  const std::string path_ = "memory";
  const std::string bytes_;
};

std::string SyntheticRecords() {
  std::string out;
  uint64_t state = 1;
  for (size_t i = 0; i < kSyntheticRecords; ++i) {
    uint8_t data[250];
    for (uint8_t& byte : data) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = (state >> 33 & 3) == 0 ? state >> 40 : 0;
    }
    const uint64_t length = sizeof data;
    const uint32_t length_crc = MaskCrc32c(Crc32cOfU64(length));
    const uint32_t data_crc = MaskCrc32c(Crc32c(data, sizeof data));
    out.append(reinterpret_cast<const char*>(&length), 8);
    out.append(reinterpret_cast<const char*>(&length_crc), 4);
    out.append(reinterpret_cast<const char*>(data), sizeof data);
    out.append(reinterpret_cast<const char*>(&data_crc), 4);
  }
  return out;
}

std::string Gzip(const std::string& plain) {
  auto stream = std::make_unique<isal_zstream>();
  isal_deflate_init(stream.get());
  std::vector<uint8_t> level_memory(ISAL_DEF_LVL3_EXTRA_LARGE);
  stream->level = 3;
  stream->level_buf = level_memory.data();
  stream->level_buf_size = level_memory.size();
  stream->gzip_flag = IGZIP_GZIP;
  stream->end_of_stream = 1;
  stream->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(plain.data()));
  stream->avail_in = plain.size();
  std::string out(plain.size() + (1 << 20), '\0');
  stream->next_out = reinterpret_cast<uint8_t*>(out.data());
  stream->avail_out = out.size();
  if (isal_deflate(stream.get()) != COMP_OK || stream->avail_in > 0) std::abort();
  out.resize(stream->total_out);
  return out;
}

std::shared_ptr<MemoryFile> shard;

// ISA-L over bytes that lie in memory, one member, into pieces of the given size.
void BareIsal(benchmark::State& state) {
  std::vector<uint8_t> out(state.range(0));
  auto inflate = std::make_unique<inflate_state>();
  uint64_t bytes = 0;
  for (auto iteration : state) {
    isal_inflate_init(inflate.get());
    inflate->crc_flag = ISAL_GZIP;
    inflate->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(shard->bytes().data()));
    inflate->avail_in = shard->bytes().size();
    do {
      inflate->next_out = out.data();
      inflate->avail_out = out.size();
      if (isal_inflate(inflate.get()) != ISAL_DECOMP_OK) std::abort();
      bytes += out.size() - inflate->avail_out;
    } while (inflate->avail_out == 0);
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BareIsal)->RangeMultiplier(4)->Range(64 << 10, 4 << 20);

void Stream(benchmark::State& state) {
  const size_t piece_bytes = state.range(0);
  uint64_t bytes = 0;
  std::vector<uint8_t> memory;
  for (auto iteration : state) {
    auto stream = OpenStream(shard, Compression::kGzip);
    if (!stream.ok()) std::abort();
    const size_t history = (*stream)->history_bytes();
    memory.resize(history + piece_bytes);
    while (true) {
      const auto count = (*stream)->Read(absl::MakeSpan(memory).subspan(history));
      if (!count.ok()) std::abort();
      if (*count == 0) break;
      bytes += *count;
      std::memmove(memory.data(), memory.data() + *count, history);
    }
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(Stream)->RangeMultiplier(4)->Range(64 << 10, 4 << 20);

// Framing and both checksums of every record besides.
void Records(benchmark::State& state) {
  uint64_t bytes = 0;
  uint64_t records = 0;
  RecordChunk chunk;
  for (auto iteration : state) {
    auto stream = RecordStream::Open(shard, Compression::kGzip, {});
    if (!stream.ok()) std::abort();
    do {
      (*stream)->Next(&chunk);
      if (!chunk.error.ok()) std::abort();
      records += chunk.records.size();
    } while (!chunk.end_of_file);
    bytes += chunk.next_offset;
  }
  state.SetBytesProcessed(bytes);
  state.SetItemsProcessed(records);
}
BENCHMARK(Records);

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::string bytes;
  if (argc > 1) {
    auto file = penstock::LocalFileSystem().Open(argv[1]);
    if (!file.ok()) {
      std::fprintf(stderr, "%s\n", file.status().ToString().c_str());
      return 1;
    }
    bytes.resize((*file)->size());
    const auto count =
        (*file)->ReadAt(0, absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()));
    if (!count.ok() || *count < bytes.size()) return 1;
  } else {
    bytes = penstock::Gzip(penstock::SyntheticRecords());
  }
  penstock::shard = std::make_shared<penstock::MemoryFile>(std::move(bytes));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
