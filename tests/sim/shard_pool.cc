#include "tests/sim/shard_pool.h"

#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"
#include "io/record/example_builder.h"
#include "tests/support/compressed.h"

namespace penstock::test {
namespace {

using State = PooledShard::State;

std::string Checksum(const std::string& bytes) {
  const uint32_t crc =
      MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  return {reinterpret_cast<const char*>(&crc), 4};
}

std::string Frame(const std::string& data) {
  const uint64_t length = data.size();
  const std::string header(reinterpret_cast<const char*>(&length), 8);
  return header + Checksum(header) + data + Checksum(data);
}

// An Example with `n` (int64) and `d` (bytes made from n).
std::string Record(int64_t n, size_t bytes) {
  std::string data(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(n * 31 + i * 7);
  ExampleBuilder example;
  example.AddBytes("d", data);
  example.AddInt64("n", n);
  return std::string(example.Serialize());
}

// Bytes of `d` in record i of a shard of this kind: short ones, runs of long ones that are read
// late, ones that fill several chunks.
size_t DataBytes(int kind, int64_t i) {
  switch (kind) {
    case 0:
      return 8;
    case 1:
      return i % 60;
    case 2:
      return 6000 + i;
    default:
      return (i / 5) % 2 == 0 ? 20 : 9000 + i;
  }
}

std::vector<PooledShard> MakePool() {
  std::vector<PooledShard> pool;
  int64_t first = 0;
  const auto add = [&](State state, std::string bytes) {
    pool.push_back({state, std::make_shared<const std::string>(std::move(bytes))});
  };
  for (int kind = 0; kind < 4; ++kind) {
    for (const int64_t count : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55}) {
      if (kind >= 2 && (count == 0 || count == 2 || count == 55)) continue;
      std::string whole, without_example, lines;
      size_t middle = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (i == count / 2) middle = whole.size();
        const std::string frame = Frame(Record(first + i, DataBytes(kind, i)));
        whole += frame;
        without_example += i == count / 2 ? Frame("\xff no message") : frame;
        absl::StrAppend(&lines, "line ", first + i, i % 3 == 0 ? "\r\n" : "\n");
      }
      first += 1000;
      add(State::kWhole, whole);
      if (count < 3) continue;
      if (kind < 3) add(State::kGzip, Gzip(whole));
      std::string damaged = whole;
      damaged[middle + 15] ^= 0x10;
      add(State::kDamagedData, damaged);
      damaged = whole;
      damaged[middle + 2] ^= 0x10;
      add(State::kDamagedLength, damaged);
      add(State::kCut, whole.substr(0, whole.size() - 7));
      add(State::kNoExample, without_example);
      if (kind == 0) add(State::kLines, lines);
    }
  }
  return pool;
}

}  // namespace

const std::vector<PooledShard>& ShardPool() {
  static const std::vector<PooledShard> pool = MakePool();
  return pool;
}

}  // namespace penstock::test
