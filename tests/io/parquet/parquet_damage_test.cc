// Bytes that are no Parquet file, or hardly one: never a crash, always a status with its address.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/file/damage.h"
#include "tests/io/parquet/parquet_source.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/wire_bytes.h"

namespace penstock {
namespace {

using testing::ReadGolden;

constexpr test::ParquetLimits kLimits = {.rows = 10'000, .page_bytes = 1 << 20};

// Reads all columns that are read here, and says how many could be. Errors are of the kinds that
// there are, with their address.
size_t ReadAll(const std::string& bytes) {
  const auto file = test::InMemory(bytes);
  const auto check = [&](const absl::Status& status) {
    INFO(status);
    CHECK((absl::IsDataLoss(status) || absl::IsUnimplemented(status) ||
           absl::IsInvalidArgument(status)));
    if (!absl::IsDataLoss(status)) return;
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("memory") && Catch::Contains("offset"));
  };
  const auto footer = ParquetFooter::Read(*file);
  if (!footer.ok()) {
    check(footer.status());
    return 0;
  }
  size_t sound = 0;
  for (size_t i = 0; i < footer->columns().size(); ++i) {
    const auto read = test::ReadColumn(*footer, i, {file.get()}, 1000, kLimits);
    sound += read.ok();
    if (!read.ok()) check(read.status());
  }
  return sound;
}

size_t FooterBegin(const std::string& bytes) {
  uint32_t footer = 0;
  std::memcpy(&footer, bytes.data() + bytes.size() - 8, sizeof(footer));
  return bytes.size() - 8 - footer;
}

TEST_CASE("parquet: a file that is cut anywhere is an error with its address") {
  for (const std::string name : {"parquet/few_zstd_v2.parquet", "parquet/brotli.parquet"}) {
    const std::string bytes = ReadGolden(name);
    for (size_t size = 0; size < bytes.size(); ++size) {
      INFO(name << " cut to " << size << " bytes");
      const auto footer = ParquetFooter::Read(*test::InMemory(bytes.substr(0, size)));
      CHECK(absl::IsDataLoss(footer.status()));
      CHECK_THAT(
          std::string(footer.status().message()),
          Catch::Contains("memory, offset") && Catch::Contains("PAR1") || Catch::Contains("cut"));
    }
  }
}

TEST_CASE("parquet: a file that is cut in the middle, with its footer, is never read beyond") {
  const std::string bytes = ReadGolden("parquet/pages_v1.parquet");
  const size_t footer = FooterBegin(bytes);
  for (size_t cut = 1; cut + 4 < footer; cut += 3) {
    INFO("without " << cut << " bytes");
    ReadAll(bytes.substr(0, footer - cut) + bytes.substr(footer));
  }
}

TEST_CASE("parquet: any bit of a footer another one is read, or refused") {
  for (const std::string name : {"parquet/few_none_v1.parquet", "parquet/list.parquet",
                                 "parquet/delta_texts.parquet", "parquet/few_zstd_v2.parquet"}) {
    const std::string bytes = ReadGolden(name);
    for (size_t bit = FooterBegin(bytes) * 8; bit < bytes.size() * 8; ++bit) {
      INFO(name << ", bit " << bit % 8 << " of byte " << bit / 8);
      std::string changed = bytes;
      changed[bit / 8] ^= static_cast<char>(1 << bit % 8);
      ReadAll(changed);
    }
  }
}

TEST_CASE("parquet: any byte another one is read, or refused") {
  for (const std::string name : {"few_none_v1", "few_none_v2", "few_snappy_v2", "few_lz4_v1",
                                 "few_gzip_v1", "few_zstd_v2"}) {
    const std::string bytes = ReadGolden("parquet/" + name + ".parquet");
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
        std::string changed = bytes;
        if (changed[at] == value) continue;
        changed[at] = value;
        INFO(name << ", byte " << at);
        ReadAll(changed);
      }
    }
  }
}

TEST_CASE("parquet: any byte of pages of all types another one is read, or refused") {
  for (const std::string name :
       {"pages_v2", "plain_none_v1", "deltas_v2", "dictionary_snappy_v2"}) {
    const std::string bytes = ReadGolden("parquet/" + name + ".parquet");
    const size_t end = FooterBegin(bytes);
    for (size_t at = 4; at < end; at += 11) {
      std::string changed = bytes;
      changed[at] ^= static_cast<char>(1 << at % 8);
      INFO(name << ", byte " << at);
      ReadAll(changed);
    }
  }
}

TEST_CASE("parquet: a page whose checksum does not hold is damaged, and says where") {
  const std::string bytes = ReadGolden("parquet/pages_v1.parquet");
  const auto file = test::InMemory(bytes);
  const auto footer = ParquetFooter::Read(*file);
  REQUIRE(footer.ok());
  size_t pages_seen = 0;
  for (size_t i = 0; i < footer->columns().size(); ++i) {
    const auto pages = ReadParquetPages(*file, footer->chunk(0, i));
    REQUIRE(pages.ok());
    for (const ParquetPage& page : pages->data) {
      REQUIRE(page.sum);
      if (page.bytes == 0) continue;
      std::string changed = bytes;
      changed[page.offset + page.bytes / 2] ^= 1;
      const auto damaged = test::InMemory(changed);
      const auto read = test::ReadColumn(*footer, i, {damaged.get()}, 1000);
      CHECK(absl::IsDataLoss(read.status()));
      CHECK_THAT(
          std::string(read.status().message()),
          Catch::Contains("checksum") && Catch::Contains("offset " + std::to_string(page.offset)));
      ++pages_seen;
    }
  }
  CHECK(pages_seen > 40);
}

// A page of version 1 by hand. Numbers are zigzag varints.
std::string Number(int64_t value) {
  return testing::Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

std::string DataHeader(int64_t plain, int64_t packed, int64_t values) {
  const std::string ends(2, '\0');
  return absl::StrCat("\x15", Number(0), "\x15", Number(plain), "\x15", Number(packed), "\x2c\x15",
                      Number(values), "\x15", Number(0), "\x15", Number(3), "\x15", Number(3),
                      ends);
}

struct Forged {
  std::string bytes;
  ParquetChunk chunk;
};

Forged Forge(const std::string& pages, uint64_t values, ParquetCodec codec) {
  Forged forged{"PAR1" + pages, {}};
  forged.chunk.offset = 4;
  forged.chunk.bytes = pages.size();
  forged.chunk.values = values;
  forged.chunk.codec = codec;
  return forged;
}

absl::Status ReadForged(const Forged& forged, const ParquetColumn& column, uint64_t rows) {
  const auto file = test::InMemory(forged.bytes);
  const auto pages = ReadParquetPages(*file, forged.chunk);
  if (!pages.ok()) return pages.status();
  Arena scratch;
  return ReadParquetValues({file.get()}, column, forged.chunk.codec, *pages, nullptr, 0, rows, "",
                           scratch)
      .status();
}

TEST_CASE("parquet: pages that say more than they hold are refused before memory is taken") {
  ParquetColumn column;
  column.type = ParquetType::kInt64;
  column.value_bytes = 8;
  column.dtype = DType::kInt64;
  column.path = {"x"};
  const std::string body(64, 'x');
  const int64_t big = int64_t{1} << 30;
  const struct {
    const char* name;
    std::string pages;
    uint64_t values;
    ParquetCodec codec;
    const char* message;
  } cases[] = {
      {"2 GiB", DataHeader(INT32_MAX, 64, 8) + body, 8, ParquetCodec::kZstd, "at most"},
      {"2 GiB that are there not", DataHeader(INT32_MAX, INT32_MAX, 8) + body, 8,
       ParquetCodec::kUncompressed, "at most"},
      {"negative", DataHeader(-1, 64, 8) + body, 8, ParquetCodec::kZstd, "-1 unpacked"},
      {"too many packed", DataHeader(64, 65, 8) + body, 8, ParquetCodec::kUncompressed, "64 left"},
      {"snappy", DataHeader(big, 64, 8) + testing::Varint(big) + body.substr(5), 8,
       ParquetCodec::kSnappy, "can"},
      {"snappy of another size", DataHeader(64, 64, 8) + testing::Varint(big) + body.substr(5), 8,
       ParquetCodec::kSnappy, "says that it holds"},
      {"gzip", DataHeader(big, 64, 8) + body, 8, ParquetCodec::kGzip, "can"},
      {"lz4", DataHeader(big, 64, 8) + body, 8, ParquetCodec::kLz4Raw, "can"},
      {"zstd", DataHeader(big, 64, 8) + body, 8, ParquetCodec::kZstd, "zstd frame"},
      {"not compressed", DataHeader(63, 64, 8) + body, 8, ParquetCodec::kUncompressed,
       "should have 63"},
      {"too many values", DataHeader(64, 64, 9) + body, 8, ParquetCodec::kUncompressed, "8 left"},
      {"too few values", DataHeader(64, 64, 7) + body, 8, ParquetCodec::kUncompressed,
       "ends with 7"},
      {"values that are not there", DataHeader(64, 64, 1'000'000) + body, 1'000'000,
       ParquetCodec::kUncompressed, "ends before"},
      {"no header", std::string(100, '\xff'), 8, ParquetCodec::kUncompressed, "no PageHeader"},
      {"half a header", DataHeader(64, 64, 8).substr(0, 9), 8, ParquetCodec::kUncompressed,
       "ends inside"},
  };
  for (const auto& test : cases) {
    INFO(test.name);
    const Forged forged = Forge(test.pages, test.values, test.codec);
    const absl::Status status = ReadForged(forged, column, test.values);
    INFO(status);
    CHECK(absl::IsDataLoss(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains(test.message) && Catch::Contains("(memory, offset "));
  }
  CHECK(ReadForged(Forge(DataHeader(64, 64, 8) + body, 8, ParquetCodec::kUncompressed), column, 8)
            .ok());
  // Rows that a run of nulls gives in some bytes are the caller's to limit.
  column.is_optional = true;
  const std::string levels = testing::Varint(uint64_t{1} << 31) + '\0';
  std::string nulls(4, '\0');
  nulls[0] = static_cast<char>(levels.size());
  nulls += levels;
  const auto size = static_cast<int64_t>(nulls.size());
  const int64_t most = int64_t{1} << 30;
  const Forged forged = Forge(DataHeader(size, size, most) + nulls, static_cast<uint64_t>(most),
                              ParquetCodec::kUncompressed);
  CHECK(absl::IsInvalidArgument(ReadForged(forged, column, static_cast<uint64_t>(most))));
  CHECK(ReadForged(forged, column, 1000).ok());
}

TEST_CASE("parquet: what is no Parquet file says so") {
  const std::string sound = ReadGolden("parquet/bounds.parquet");
  std::string huge = sound;
  const uint32_t bytes = 1 << 30;
  std::memcpy(huge.data() + huge.size() - 8, &bytes, sizeof(bytes));
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {"", "too short"},
      {"PAR1PAR1", "too short"},
      {std::string(100, 'x'), "does not begin with PAR1"},
      {"PAR1" + std::string(100, 'x'), "does not end with PAR1"},
      {huge, "footer would have 1073741824 bytes"},
      {std::string("PAR1\0\0\0\0\0PAR1", 13), "footer"},
  };
  for (const auto& one : cases) {
    const auto footer = ParquetFooter::Read(*test::InMemory(one.bytes));
    INFO(footer.status());
    CHECK(absl::IsDataLoss(footer.status()));
    CHECK_THAT(std::string(footer.status().message()), Catch::Contains(one.message));
  }
  const auto encrypted =
      ParquetFooter::Read(*test::InMemory("PARE" + std::string(100, 'x') + "PARE"));
  CHECK(absl::IsUnimplemented(encrypted.status()));
  CHECK_THAT(std::string(encrypted.status().message()), Catch::Contains("encrypted"));
}

TEST_CASE("parquet: a file that became shorter says so") {
  const std::string bytes = ReadGolden("parquet/plain_none_v1.parquet");
  const auto file = test::InMemory(bytes);
  const auto footer = ParquetFooter::Read(*file);
  REQUIRE(footer.ok());
  file->Shrink(40);
  const auto read = test::ReadColumn(*footer, 5, {file.get()}, 100);
  CHECK(IsFileShrunk(read.status()));
  CHECK(IsFileShrunk(ParquetFooter::Read(*file).status()));
}

}  // namespace
}  // namespace penstock
