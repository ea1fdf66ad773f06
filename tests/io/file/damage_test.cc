// Damaged TFRecord files, read by each of the readers. Fault numbers are those of the fault list.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/arena.h"
#include "io/record/resynchronise.h"
#include "io/record/tfrecord_reader.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"
#include "tests/support/stops_soon.h"

namespace penstock {
namespace {

using test::Found;
using test::Frame;
using test::Header;
using test::InMemory;

const RecordStreamOptions kSkip = {.on_damage = OnDamage::kSkipRecord};

// What all readers that skip damage find alike.
Found Skip(const std::string& bytes) {
  const Found found = test::ReadStream(InMemory(bytes), Compression::kNone, kSkip);
  CHECK(found.error.ok());
  CHECK(test::Tiles(found, bytes.size()));
  CHECK((test::ReadChunks(*InMemory(bytes), OnDamage::kSkipRecord) == found));
  CHECK((test::ReadStream(InMemory(test::Gzip(bytes)), Compression::kGzip, kSkip) == found));
  return found;
}

// What all readers that fail find alike, but for the address.
Found Fail(const std::string& bytes) {
  const Found found = test::ReadChunks(*InMemory(bytes));
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    const std::string file = compression == Compression::kNone ? bytes : test::Gzip(bytes);
    const Found streamed = test::ReadStream(InMemory(file), compression, {});
    CHECK((streamed.records == found.records));
    CHECK(streamed.error_offset == found.error_offset);
    CHECK(streamed.error.code() == found.error.code());
    if (!found.error.ok()) {
      CHECK_THAT(std::string(streamed.error.message()),
                 Catch::StartsWith(absl::StrCat(found.error.message(), " (memory, record ",
                                                found.records.size(), ", ")));
    }
  }
  return found;
}

// Records of many lengths, also late ones and longer ones than a chunk; the offset of each and the
// end.
struct Sample {
  explicit Sample(const std::vector<size_t>& lengths) {
    for (const size_t length : lengths) {
      std::string data;
      for (size_t i = 0; i < length; ++i)
        data += static_cast<char>((i * 31 + records.size() * 7 + i / 251) & 0xff);
      offsets.push_back(bytes.size());
      records.push_back(data);
      bytes += Frame(data);
    }
    offsets.push_back(bytes.size());
  }
  std::vector<std::string> Without(size_t record) const {
    std::vector<std::string> rest = records;
    rest.erase(rest.begin() + record);
    return rest;
  }
  Damage At(size_t record, DamageReason reason) const {
    return {offsets[record], offsets[record + 1] - offsets[record], reason};
  }
  std::vector<std::string> records;
  std::vector<uint64_t> offsets;
  std::string bytes;
};

const Sample kSample({5, 0, 300, 70000, 40, 9000, 8192, 8193, 1, 200000, 12});

TEST_CASE("Without damage, skipping readers find what the others find") {
  const Found found = Skip(kSample.bytes);
  CHECK((found.records == kSample.records));
  CHECK(found.damage.empty());
  CHECK((Fail(kSample.bytes).records == kSample.records));
}

TEST_CASE("fault 1: a flipped bit in a length or its checksum costs that record") {
  for (size_t record = 0; record < kSample.records.size(); ++record) {
    for (size_t bit = 0; bit < 96; bit += record < 3 ? 1 : 13) {
      INFO("record " << record << " bit " << bit);
      std::string bytes = kSample.bytes;
      bytes[kSample.offsets[record] + bit / 8] ^= 1 << bit % 8;
      const Found failed = Fail(bytes);
      CHECK(failed.error.code() == absl::StatusCode::kDataLoss);
      CHECK(absl::StrContains(std::string(failed.error.message()), "length checksum mismatch"));
      CHECK(failed.error_offset == kSample.offsets[record]);
      CHECK(failed.records.size() == record);
      const Found skipped = Skip(bytes);
      CHECK((skipped.records == kSample.Without(record)));
      CHECK((skipped.damage ==
             std::vector<Damage>{kSample.At(record, DamageReason::kLengthChecksum)}));
    }
  }
}

TEST_CASE("fault 2: a flipped bit in the data or its checksum costs that record") {
  for (size_t record = 0; record < kSample.records.size(); ++record) {
    const size_t bytes_behind_header = kSample.records[record].size() + kRecordFooterBytes;
    for (size_t at = 0; at < bytes_behind_header; at += 1 + bytes_behind_header / 9) {
      INFO("record " << record << " byte " << at);
      std::string bytes = kSample.bytes;
      bytes[kSample.offsets[record] + kRecordHeaderBytes + at] ^= 0x40;
      const Found failed = Fail(bytes);
      CHECK(absl::StrContains(std::string(failed.error.message()), "data checksum mismatch"));
      CHECK(failed.error_offset == kSample.offsets[record]);
      CHECK(failed.records.size() == record);
      const Found skipped = Skip(bytes);
      CHECK((skipped.records == kSample.Without(record)));
      CHECK(
          (skipped.damage == std::vector<Damage>{kSample.At(record, DamageReason::kDataChecksum)}));
    }
  }
}

TEST_CASE("faults 3 and 4: a tail cut in header, payload or footer, at every point") {
  const Sample sample({5, 0, 300, 9000, 40});
  for (size_t cut = 0; cut <= sample.bytes.size(); cut += cut > 700 && cut < 8900 ? 97 : 1) {
    INFO("cut at " << cut);
    const std::string bytes = sample.bytes.substr(0, cut);
    size_t whole = 0;
    while (sample.offsets[whole + 1] <= cut && whole + 1 < sample.records.size()) ++whole;
    if (cut == sample.bytes.size()) ++whole;
    const std::vector<std::string> records(sample.records.begin(), sample.records.begin() + whole);
    const Found failed = Fail(bytes);
    const Found skipped = Skip(bytes);
    CHECK((failed.records == records));
    CHECK((skipped.records == records));
    const size_t rest = cut - sample.offsets[whole];
    if (rest == 0) {
      CHECK(failed.error.ok());
      CHECK(skipped.damage.empty());
      continue;
    }
    const bool in_header = rest < kRecordHeaderBytes;
    CHECK(failed.error_offset == sample.offsets[whole]);
    CHECK(absl::StrContains(std::string(failed.error.message()),
                            in_header ? "header is cut" : "record is cut"));
    CHECK((skipped.damage ==
           std::vector<Damage>{{sample.offsets[whole], rest,
                                in_header ? DamageReason::kCutHeader : DamageReason::kCutRecord}}));
  }
}

TEST_CASE("fault 5: records without a byte are records") {
  const Sample sample(std::vector<size_t>(10000, 0));
  CHECK((Skip(sample.bytes).records == sample.records));
  CHECK((Fail(sample.bytes).records == sample.records));
}

TEST_CASE("fault 6: a huge length is refused before anything is allocated, and passed over") {
  const Sample tail({7, 8});
  for (const uint64_t length :
       {~uint64_t{0}, ~uint64_t{0} - 15, ~uint64_t{0} - 11, uint64_t{1} << 63, uint64_t{1} << 40,
        kMaxRecordBytes + 1, kMaxRecordBytes, uint64_t{1} << 27, uint64_t{200}}) {
    INFO("length " << length);
    const std::string bad = Header(length) + std::string(50, 'x');
    const Found failed = Fail(bad + tail.bytes);
    CHECK(absl::StrContains(std::string(failed.error.message()), length > kMaxRecordBytes
                                                                     ? "record longer than limit"
                                                                     : "record is cut"));
    const Found skipped = Skip(bad + tail.bytes);
    CHECK((skipped.records == tail.records));
    CHECK((skipped.damage ==
           std::vector<Damage>{
               {0, bad.size(),
                length > kMaxRecordBytes ? DamageReason::kTooLong : DamageReason::kCutRecord}}));
  }
}

TEST_CASE("fault 7: an empty file has no records") {
  CHECK((Skip("") == Found{}));
  CHECK((Fail("") == Found{}));
}

TEST_CASE("Bytes inserted between records, zeros or noise, are one damage each") {
  const Sample first({100, 5, 9000});
  const Sample second({0, 70000, 3});
  for (const size_t count : {1, 11, 12, 15, 16, 17, 1000, 300000}) {
    for (const bool zeros : {true, false}) {
      INFO(count << " " << zeros);
      std::string noise;
      uint32_t state = 3;
      for (size_t i = 0; i < count; ++i) {
        state = state * 1664525 + 1013904223;
        noise += static_cast<char>(zeros ? 0 : state >> 24);
      }
      const Found found = Skip(first.bytes + noise + second.bytes + noise);
      CHECK(found.records.size() == 6);
      REQUIRE(found.damage.size() == 2);
      CHECK(found.damage[0] == Damage{first.bytes.size(), count, DamageReason::kLengthChecksum});
      CHECK(found.damage[1].length == count);
    }
  }
}

TEST_CASE("Bytes lost from a record's middle cost that record and no other") {
  for (size_t record = 0; record < kSample.records.size(); ++record) {
    const size_t length = kSample.records[record].size();
    for (const size_t lost : {size_t{1}, length / 2, length}) {
      if (lost == 0 || lost > length) continue;
      INFO("record " << record << " lost " << lost);
      std::string bytes = kSample.bytes;
      bytes.erase(kSample.offsets[record] + kRecordHeaderBytes, lost);
      const Found found = Skip(bytes);
      CHECK((found.records == kSample.Without(record)));
      CHECK(found.damage.size() == 1);
    }
  }
}

TEST_CASE("Neighbours that are damaged both are two damages where the lengths hold") {
  std::string bytes = kSample.bytes;
  bytes[kSample.offsets[2] + 20] ^= 1;
  bytes[kSample.offsets[3] + 20] ^= 1;
  const Found found = Skip(bytes);
  CHECK((found.damage == std::vector<Damage>{kSample.At(2, DamageReason::kDataChecksum),
                                             kSample.At(3, DamageReason::kDataChecksum)}));
}

TEST_CASE("TFRecords inside a record's data are not taken for the file's own") {
  const Sample inner({5, 6, 7});
  const std::string outer = Frame(inner.bytes + "tail");
  std::string bytes = Frame("a") + outer + Frame("b");
  bytes[Frame("a").size() + outer.size() - 6] ^= 1;
  CHECK((Skip(bytes).records == std::vector<std::string>{"a", "b"}));
  // With nothing behind it that its length could be believed by.
  bytes.resize(bytes.size() - Frame("b").size());
  CHECK((Skip(bytes).records == std::vector<std::string>{"a"}));
}

TEST_CASE("Headers that hold while their data does not are passed over") {
  std::string bytes = Frame("a") + "x";
  for (int i = 0; i < 2000; ++i) bytes += Header(5000 + i);
  bytes += std::string(9000, 'y');
  const size_t end = bytes.size();
  bytes += Frame("b");
  const Found found = Skip(bytes);
  CHECK((found.records == std::vector<std::string>{"a", "b"}));
  CHECK((found.damage == std::vector<Damage>{{Frame("a").size(), end - Frame("a").size(),
                                              DamageReason::kLengthChecksum}}));
  // Also where a record begins directly behind one, in what would be its data.
  CHECK((Skip(Frame("a") + "x" + Header(3) + Frame("b")).records ==
         std::vector<std::string>{"a", "b"}));
}

TEST_CASE("Where too many headers hold that are none, the rest of the file is given up") {
  const std::string sound = Frame("a");
  std::string bytes = sound + "x";
  const size_t length = 1 << 20;
  for (size_t i = 0; i <= kFalseCandidateBytesMax / length; ++i) bytes += Header(length);
  bytes += std::string(length, 'y') + Frame("b");
  const Found found = test::ReadStream(InMemory(bytes), Compression::kNone, kSkip);
  CHECK((found.records == std::vector<std::string>{"a"}));
  CHECK((found.damage == std::vector<Damage>{{sound.size(), bytes.size() - sound.size(),
                                              DamageReason::kLengthChecksum}}));
}

TEST_CASE("Long records are verified around the size of a piece of their data") {
  std::string bytes;
  std::vector<std::string> data;
  for (const size_t pieces : {1, 2}) {
    for (int more = -5; more <= 5; ++more) {
      data.emplace_back(pieces * kChunkBytes + more, static_cast<char>('a' + more + 5));
      bytes += Frame(data.back());
    }
  }
  CHECK((Skip(bytes).records == data));
}

TEST_CASE("fault 8: in a compressed file, what follows bad compressed data is lost with it") {
  const Sample sample(std::vector<size_t>(3000, 100));
  const std::string file = test::Gzip(sample.bytes);
  const struct {
    std::string bytes;
    const char* what;
  } cases[] = {{file.substr(0, file.size() / 2), "cut"}, {file.substr(0, file.size() - 5), "cut"}};
  for (const auto& damaged : cases) {
    const Found failed = test::ReadStream(InMemory(damaged.bytes), Compression::kGzip, {});
    CHECK(failed.error.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(failed.error.message()), Catch::Contains("bad gzip data: the file is"));
    CHECK_THAT(std::string(failed.error.message()),
               Catch::EndsWith(absl::StrCat(", in record ", failed.records.size())));
    const Found skipped = test::ReadStream(InMemory(damaged.bytes), Compression::kGzip, kSkip);
    CHECK(skipped.error.ok());
    CHECK((skipped.records == failed.records));
    CHECK(
        (skipped.damage == std::vector<Damage>{{sample.offsets[failed.records.size()],
                                                kDamageToTheEnd, DamageReason::kCompressedData}}));
  }
  // Any flipped bit: no wrong record, and an error or damage.
  for (size_t bit = 80; bit < 8 * file.size(); bit += 1 + file.size() / 25) {
    std::string flipped = file;
    flipped[bit / 8] ^= 1 << bit % 8;
    INFO("bit " << bit);
    const Found failed = test::ReadStream(InMemory(flipped), Compression::kGzip, {});
    CHECK(!failed.error.ok());
    const Found skipped = test::ReadStream(InMemory(flipped), Compression::kGzip, kSkip);
    CHECK(skipped.error.ok());
    CHECK(!skipped.damage.empty());
    CHECK(skipped.records.size() >= failed.records.size());
    for (size_t i = 0; i < skipped.records.size(); ++i) {
      // All records have the same length, but none the data of another.
      const size_t ordinal = skipped.offsets[i] / (100 + 16);
      if (skipped.offsets[i] % (100 + 16) == 0 && ordinal < sample.records.size())
        CHECK((skipped.records[i] == sample.records[ordinal]));
    }
  }
}

TEST_CASE("fault 9: compressed records that are declared plain are named") {
  for (const auto& [file, name] :
       {std::pair<std::string, const char*>{test::Gzip("some bytes"),
                                            "gzip file: declare its compression as GZIP"},
        {test::Zlib("some bytes"), "zlib file: declare its compression as ZLIB"},
        {test::Zstd("some bytes"), "zstd file: declare its compression as ZSTD"},
        {std::string("some text of a few words"), "not a TFRecord file?"}}) {
    CHECK_THAT(std::string(Fail(file).error.message()), Catch::Contains(name));
  }
}

TEST_CASE("fault 10: a record that only claims to be long allocates nothing") {
  // 64 MiB of zeros behind a header that claims 256 MiB: it is refused with what is there.
  std::string bytes = Header(kMaxRecordBytes) + std::string(64 << 20, '\0');
  const std::string bomb = test::Gzip(bytes, 1);
  CHECK(bomb.size() < bytes.size() / 200);
  const Found failed = test::ReadStream(InMemory(bomb), Compression::kGzip, {});
  CHECK_THAT(std::string(failed.error.message()), Catch::StartsWith("record is cut"));
  // A length above the limit stops at once, whatever would come.
  bytes.replace(0, 12, Header(kMaxRecordBytes + 1));
  auto file = InMemory(test::Gzip(bytes, 1));
  const Found stopped = test::ReadStream(file, Compression::kGzip, {});
  CHECK_THAT(std::string(stopped.error.message()), Catch::StartsWith("record longer than limit"));
  auto stream = RecordStream::Open(file, Compression::kGzip, {});
  REQUIRE(stream.ok());
  RecordChunk chunk;
  (*stream)->Next(&chunk);
  CHECK((*stream)->window_bytes() <= 2 * ByteWindow::kPieceBytes);
}

// A file that is all zeros but for its records at the end.
class Sparse final : public RandomAccessFile {
 public:
  Sparse(uint64_t begin, std::string tail) : begin_(begin), tail_(std::move(tail)) {}
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return begin_ + tail_.size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    if (offset >= size()) return 0;
    const size_t count = std::min<uint64_t>(out.size(), size() - offset);
    for (size_t i = 0; i < count; ++i)
      out[i] = offset + i < begin_ ? 0 : tail_[offset + i - begin_];
    return count;
  }

 private:
  const std::string path_ = "sparse";
  const uint64_t begin_;
  const std::string tail_;
};

// What ReadChunk finds from `offset` to the end.
Found ReadFrom(RandomAccessFile& file, uint64_t offset, OnDamage on_damage) {
  Found found;
  RecordChunk chunk;
  Arena arena;
  do {
    ReadChunk(file, offset, false, &chunk, on_damage);
    for (const RecordChunk::Record& record : chunk.records) {
      const auto data = ReadRecord(file, record.offset, record.length, arena);
      REQUIRE(data.ok());
      found.records.emplace_back(reinterpret_cast<const char*>(*data), record.length);
      found.offsets.push_back(record.offset);
    }
    found.damage.insert(found.damage.end(), chunk.damage.begin(), chunk.damage.end());
    found.error = chunk.error;
    offset = chunk.next_offset;
  } while (!chunk.end_of_file && chunk.error.ok());
  return found;
}

// The largest file that Linux can have ends just below 2^63.
TEST_CASE("fault 62: offsets beyond 2^32 and up to 2^63 do not wrap") {
  std::string bytes = kSample.bytes;
  bytes[kSample.offsets[4] + 3] ^= 1;
  for (const uint64_t begin : {uint64_t{6} << 30, (uint64_t{1} << 63) - 1 - bytes.size()}) {
    INFO("records from " << begin << " on");
    Sparse file(begin, bytes);
    const Found found = ReadFrom(file, begin, OnDamage::kSkipRecord);
    REQUIRE(found.error.ok());
    CHECK(found.records.size() == kSample.records.size() - 1);
    CHECK(found.records.back() == kSample.records.back());
    CHECK(found.offsets.back() == begin + kSample.offsets[kSample.records.size() - 1]);
    Damage expected = kSample.At(4, DamageReason::kLengthChecksum);
    expected.offset += begin;
    CHECK((found.damage == std::vector<Damage>{expected}));
  }
}

TEST_CASE("fault 62: a length that would lead beyond 2^63 or 2^64 is an error at its offset") {
  constexpr uint64_t kEnd = (uint64_t{1} << 63) - 1;
  for (const uint64_t length :
       {uint64_t{100}, kMaxRecordBytes, uint64_t{1} << 62, kEnd, ~uint64_t{0}}) {
    INFO("length " << length);
    const std::string bytes = Frame("first") + Header(length) + "short";
    Sparse file(kEnd - bytes.size(), bytes);
    const Found failed = ReadFrom(file, kEnd - bytes.size(), OnDamage::kFail);
    CHECK(failed.records == std::vector<std::string>{"first"});
    CHECK(failed.error.code() == absl::StatusCode::kDataLoss);
    const Found skipped = ReadFrom(file, kEnd - bytes.size(), OnDamage::kSkipRecord);
    CHECK(skipped.error.ok());
    REQUIRE(skipped.damage.size() == 1);
    CHECK(skipped.damage[0].offset == kEnd - 17);
    CHECK(skipped.damage[0].length == 17);
  }
}

TEST_CASE("fault 35: the search for the next record looks for a stop all over the damage") {
  const auto zeros = InMemory(std::string(size_t{32} << 20, '\0'));
  test::CheckStopsSoon([&] {
    const Found found = test::ReadStream(zeros, Compression::kNone, kSkip);
    CHECK(found.records.empty());
  });
}

}  // namespace
}  // namespace penstock
