#include "io/record/tfrecord_reader.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "io/file/crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"

namespace penstock {
namespace {

using test::Found;
using test::Frame;
using test::MemoryFile;

Found ReadAll(RandomAccessFile& file) { return test::ReadChunks(file); }

TEST_CASE("CRC-32C has the check value of its definition, and the mask of TensorFlow's test") {
  const std::string digits = "123456789";
  CHECK(Crc32c(reinterpret_cast<const uint8_t*>(digits.data()), 9) == 0xe3069283u);
  const std::string zeros(32, '\0');
  CHECK(Crc32c(reinterpret_cast<const uint8_t*>(zeros.data()), 32) ==
        0x8a9136aau);  // RFC 3720, B.4
  CHECK(Crc32cOfU64(0) == Crc32c(reinterpret_cast<const uint8_t*>(zeros.data()), 8));
  CHECK(MaskCrc32c(0) == 0xa282ead8u);
  CHECK(MaskCrc32c(0x00008000u) == 0xa282ead9u);
}

TEST_CASE("CRC-32C of every length equals the definition, bit by bit") {
  std::vector<uint8_t> bytes(700);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 167 + i / 7);
  uint32_t crc = ~uint32_t{0};
  for (size_t size = 0; size <= bytes.size(); ++size) {
    CHECK(Crc32c(bytes.data(), size) == ~crc);
    // Data that begins elsewhere in a cache line, in memory of just its size.
    const std::vector<uint8_t> copy(bytes.begin(), bytes.begin() + size);
    CHECK(Crc32c(copy.data(), size) == ~crc);
    CHECK(ExtendCrc32c(Crc32c(copy.data(), size / 3), copy.data() + size / 3, size - size / 3) ==
          ~crc);
    if (size == bytes.size()) break;
    crc ^= bytes[size];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
}

TEST_CASE(
    "A file cut at every point gives the whole records and then an error with the offset of the "
    "cut one") {
  const std::vector<std::string> data = {"first", "", std::string(300, 'x')};
  std::string bytes;
  std::vector<size_t> ends = {0};
  for (const std::string& record : data) {
    bytes += Frame(record);
    ends.push_back(bytes.size());
  }
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    INFO("cut at " << cut);
    MemoryFile file(bytes.substr(0, cut));
    const Found found = ReadAll(file);
    size_t whole = 0;
    while (whole + 1 < ends.size() && ends[whole + 1] <= cut) ++whole;
    CHECK(found.records == std::vector<std::string>(data.begin(), data.begin() + whole));
    if (ends[whole] == cut) {
      CHECK(found.error.ok());
    } else {
      CHECK(found.error.code() == absl::StatusCode::kDataLoss);
      CHECK(absl::StrContains(std::string(found.error.message()), "is cut"));
      CHECK(found.error_offset == ends[whole]);
    }
  }
}

TEST_CASE("Every single flipped bit of a frame is noticed") {
  const std::string bytes = Frame("some data") + Frame("more");
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= 1 << bit % 8;
    MemoryFile file(flipped);
    const Found found = ReadAll(file);
    INFO("bit " << bit);
    CHECK(found.error.code() == absl::StatusCode::kDataLoss);
    CHECK(found.error_offset ==
          (bit / 8 < Frame("some data").size() ? 0 : Frame("some data").size()));
  }
}

TEST_CASE("Records of every length around the limits of chunk and late reading come whole") {
  std::string bytes;
  std::vector<std::string> data;
  for (size_t length :
       {size_t{0}, size_t{1}, size_t{8191}, size_t{8192}, size_t{8193}, kChunkBytes - 17,
        kChunkBytes - 16, kChunkBytes, 3 * kChunkBytes, size_t{5}}) {
    for (int copy = 0; copy < 3; ++copy) {
      data.emplace_back(length, static_cast<char>('a' + copy));
      bytes += Frame(data.back());
    }
  }
  MemoryFile file(bytes);
  const Found found = ReadAll(file);
  CHECK(found.error.ok());
  CHECK(found.records == data);
}

TEST_CASE("A length that wraps around is refused") {
  for (uint64_t length : {~uint64_t{0}, ~uint64_t{0} - 15, uint64_t{1} << 63, uint64_t{1} << 40,
                          kMaxRecordBytes + 1}) {
    std::string bytes(reinterpret_cast<const char*>(&length), 8);
    const uint32_t crc = MaskCrc32c(Crc32cOfU64(length));
    bytes.append(reinterpret_cast<const char*>(&crc), 4);
    bytes.append(64, 'x');
    MemoryFile file(bytes);
    const Found found = ReadAll(file);
    CHECK(found.records.empty());
    CHECK(absl::StrContains(std::string(found.error.message()), "record longer than limit"));
  }
}

TEST_CASE("A file that shrinks while it is read, or cannot be read, is an error and no end") {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += Frame(std::string(200, 'x'));
  MemoryFile shrunk(bytes);
  shrunk.Shrink(bytes.size() - 1000);
  CHECK(absl::StrContains(std::string(ReadAll(shrunk).error.message()), "became shorter"));
  // Long ones are found by their headers alone.
  const std::string longer = Frame(std::string(kLateRecordBytes + 1, 'x'));
  std::string many;
  for (int i = 0; i < 100; ++i) many += longer;
  for (const size_t of_header : {0, 5}) {
    MemoryFile cut(many);
    cut.Shrink(60 * longer.size() + of_header);
    CHECK(absl::StrContains(std::string(ReadAll(cut).error.message()), "became shorter"));
  }
  MemoryFile gone(bytes);
  gone.Fail();
  CHECK(ReadAll(gone).error.code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("The ordinal of a record is found from its offset") {
  std::string bytes;
  std::vector<uint64_t> offsets;
  for (int i = 0; i < 50; ++i) {
    offsets.push_back(bytes.size());
    bytes += Frame(std::string(i * 7, 'x'));
  }
  MemoryFile file(bytes);
  for (int i = 0; i < 50; ++i) CHECK(RecordOrdinal(file, offsets[i]) == static_cast<uint64_t>(i));
  const absl::Status status = WithAddress(absl::DataLossError("bad"), file, offsets[17]);
  CHECK(status.message() == "bad (memory, record 17, offset " + std::to_string(offsets[17]) + ")");
  // Behind a header that does not hold, whatever its length would be, nobody counts on.
  for (const uint64_t length : {uint64_t{0}, ~uint64_t{0} - 15}) {
    std::string damaged = bytes;
    damaged.replace(offsets[20], 8, reinterpret_cast<const char*>(&length), 8);
    MemoryFile with_damage(damaged);
    CHECK(RecordOrdinal(with_damage, offsets[40]) == 20);
  }
}

}  // namespace
}  // namespace penstock
