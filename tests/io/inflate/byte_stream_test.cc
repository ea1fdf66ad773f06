#include "io/inflate/byte_stream.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"
#include "io/record/byte_window.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/memory_file.h"
#include "tests/support/stream_pieces.h"

namespace penstock {
namespace {

using test::Gzip;
using test::InMemory;
using test::Zlib;
using test::Zstd;

// Bytes that compress to a half, with references of all distances.
std::string Sample(size_t bytes) {
  std::string plain;
  uint32_t state = 7;
  while (plain.size() < bytes) {
    state = state * 1664525 + 1013904223;
    if (state >> 30 == 0 && plain.size() > 300) {
      plain += plain.substr(state % (plain.size() - 250), 20 + (state >> 8) % 200);
    } else {
      for (int i = 0; i < 8; ++i) plain += static_cast<char>((state >> i) & 0x7f);
    }
  }
  plain.resize(bytes);
  return plain;
}

struct Outcome {
  std::string plain;
  absl::Status error;
};

Outcome ReadAll(const std::shared_ptr<test::MemoryFile>& file, Compression compression,
                size_t piece_bytes = 64 << 10, size_t read_bytes = 100000) {
  Outcome outcome;
  auto stream = OpenStream(file, compression, piece_bytes);
  if (!stream.ok()) {
    outcome.error = stream.status();
    return outcome;
  }
  test::StreamPieces pieces(*std::move(stream));
  while (true) {
    const absl::StatusOr<absl::string_view> piece = pieces.Read(read_bytes);
    if (!piece.ok() || piece->empty()) {
      outcome.error = piece.status();
      // Sticky, both of them.
      CHECK(pieces.Read(read_bytes).status() == outcome.error);
      CHECK(pieces.stream().plain_offset() == outcome.plain.size());
      if (outcome.error.ok()) CHECK(pieces.stream().file_offset() == file->size());
      return outcome;
    }
    outcome.plain.append(piece->data(), piece->size());
  }
}

Outcome ReadAll(const std::string& bytes, Compression compression, size_t piece_bytes = 64 << 10,
                size_t read_bytes = 100000) {
  return ReadAll(InMemory(bytes), compression, piece_bytes, read_bytes);
}

struct Kind {
  Compression compression;
  std::string (*compress)(const std::string& plain);
};

const Kind kKinds[] = {
    {Compression::kNone, [](const std::string& plain) { return plain; }},
    {Compression::kGzip, [](const std::string& plain) { return Gzip(plain); }},
    {Compression::kGzip, [](const std::string& plain) { return Gzip(plain, 0); }},
    {Compression::kZlib, [](const std::string& plain) { return Zlib(plain); }},
    {Compression::kZstd, [](const std::string& plain) { return Zstd(plain); }},
};

TEST_CASE("A stream gives the plain bytes, in pieces of any size on both sides") {
  for (const Kind& kind : kKinds) {
    for (const size_t bytes : {0, 1, 100, 70000, 300000}) {
      const std::string plain = Sample(bytes);
      const std::string file = kind.compress(plain);
      for (const size_t piece_bytes : {16, 17, 1000, 1 << 20}) {
        for (const size_t read_bytes : {7, 32768, 1 << 20}) {
          INFO(CompressionName(kind.compression)
               << " " << bytes << " " << piece_bytes << " " << read_bytes);
          const Outcome outcome = ReadAll(file, kind.compression, piece_bytes, read_bytes);
          CHECK(outcome.error == absl::OkStatus());
          CHECK((outcome.plain == plain));
        }
      }
    }
  }
}

TEST_CASE("Bytes that lie in memory are inflated as those that are read") {
  const std::string plain = Sample(300000);
  for (const Kind& kind : kKinds) {
    std::string file = kind.compress(plain);
    for (const bool damaged : {false, true}) {
      if (damaged) file[file.size() / 2] ^= 0x10;
      for (const size_t piece_bytes : {16, 17, 1000, 20000}) {
        INFO(CompressionName(kind.compression) << " " << damaged << " " << piece_bytes);
        const auto lender = InMemory(file);
        lender->Lend();
        const Outcome lent = ReadAll(lender, kind.compression, piece_bytes);
        const Outcome read = ReadAll(file, kind.compression, piece_bytes);
        CHECK(lent.error == read.error);
        CHECK((lent.plain == read.plain));
        // libzstd must not look at bytes that may change.
        CHECK((lender->num_lent() > 0) ==
              (kind.compression == Compression::kGzip || kind.compression == Compression::kZlib));
      }
    }
  }
}

TEST_CASE("fault 7: a file of no bytes is an empty stream, whatever is declared") {
  for (const Kind& kind : kKinds) {
    const Outcome outcome = ReadAll("", kind.compression);
    CHECK(outcome.error.ok());
    CHECK(outcome.plain.empty());
  }
}

TEST_CASE("fault 8: members and frames that follow each other are joined, wherever they meet") {
  for (const Kind& kind : kKinds) {
    if (kind.compression == Compression::kNone) continue;
    for (size_t bytes = 0; bytes < 40; ++bytes) {
      const std::string file =
          kind.compress(Sample(bytes)) + kind.compress("") + kind.compress(Sample(1000));
      for (const size_t piece_bytes : {16, 23, 4096}) {
        for (const size_t read_bytes : {1, 13, 100000}) {
          const Outcome outcome = ReadAll(file, kind.compression, piece_bytes, read_bytes);
          CHECK(outcome.error == absl::OkStatus());
          CHECK((outcome.plain == Sample(bytes) + Sample(1000)));
        }
      }
    }
  }
}

TEST_CASE("A gzip header's fields are passed over, wherever a piece of input ends") {
  const std::string plain = Sample(5000);
  const std::string body = Gzip(plain).substr(10);
  for (int flags = 0; flags < 32; flags += 2) {
    for (const size_t length : {0, 1, 5, 60, 300}) {
      std::string header("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
      header[3] = static_cast<char>(flags);
      if (flags & 4) {
        header += static_cast<char>(length & 0xff);
        header += static_cast<char>(length >> 8);
        header += std::string(length, '\0');
      }
      if (flags & 8) header += std::string(length, 'n') + '\0';
      if (flags & 16) header += std::string(length, 'c') + '\0';
      const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
      if (flags & 2) header += {static_cast<char>(crc), static_cast<char>(crc >> 8)};
      for (const size_t piece_bytes : {16, 17, 29, 50, 4096}) {
        INFO(flags << " " << length << " " << piece_bytes);
        const Outcome outcome = ReadAll(header + body, Compression::kGzip, piece_bytes);
        CHECK(outcome.error == absl::OkStatus());
        CHECK((outcome.plain == plain));
      }
      if (flags & 2) {
        header.back() ^= 1;
        CHECK_THAT(std::string(ReadAll(header + body, Compression::kGzip).error.message()),
                   Catch::Contains("checksum in the header does not match"));
      }
    }
  }
}

TEST_CASE(
    "Members that need what files do not carry, or flags that nobody has defined, are refused") {
  // RFC 1950: FDICT, and the dictionary's checksum.
  std::string zlib("\x78\xbb\x12\x34\x56\x78", 6);
  zlib += Zlib("abc").substr(2);
  CHECK_THAT(std::string(ReadAll(zlib, Compression::kZlib).error.message()),
             Catch::Contains("a preset dictionary is needed"));
  // RFC 1952: reserved bits must be zero.
  for (const int bit : {0x20, 0x40, 0x80}) {
    std::string gzip = Gzip("abc");
    gzip[3] |= static_cast<char>(bit);
    CHECK_THAT(std::string(ReadAll(gzip, Compression::kGzip).error.message()),
               Catch::Contains("does not begin as such a file does"));
  }
}

TEST_CASE("Frames that zstd says to skip are skipped") {
  const std::string skipped = std::string("\x53\x2a\x4d\x18\x05\0\0\0", 8) + "extra";
  const Outcome outcome =
      ReadAll(skipped + Zstd("a") + skipped + Zstd("b") + skipped, Compression::kZstd, 16);
  CHECK(outcome.error == absl::OkStatus());
  CHECK(outcome.plain == "ab");
}

TEST_CASE("fault 8: a cut at every point is an error, behind the bytes that are there") {
  const std::string plain = Sample(700);
  for (const Kind& kind : kKinds) {
    if (kind.compression == Compression::kNone) continue;
    const std::string file = kind.compress(plain);
    for (size_t cut = 1; cut < file.size(); ++cut) {
      INFO(CompressionName(kind.compression) << " cut at " << cut << " of " << file.size());
      const Outcome outcome = ReadAll(file.substr(0, cut), kind.compression);
      CHECK(outcome.error.code() == absl::StatusCode::kDataLoss);
      CHECK(absl::StrContains(
          std::string(outcome.error.message()),
          cut < 4 && kind.compression == Compression::kZstd ? "does not begin" : "is cut"));
      CHECK((outcome.plain == plain.substr(0, outcome.plain.size())));
    }
  }
}

TEST_CASE("fault 8: corruption and a bad trailer name the compressed and the plain offset") {
  const std::string plain = Sample(300000);
  for (const Kind& kind : kKinds) {
    if (kind.compression == Compression::kNone) continue;
    const std::string file = kind.compress(plain);
    for (const size_t at : {file.size() / 2, file.size() - 1, file.size() - 4}) {
      std::string bad = file;
      bad[at] ^= 0x10;
      INFO(CompressionName(kind.compression) << " at " << at << " of " << file.size());
      const Outcome outcome = ReadAll(bad, kind.compression);
      CHECK(outcome.error.code() == absl::StatusCode::kDataLoss);
      const std::string message(outcome.error.message());
      CHECK(absl::StrContains(message, "(memory, compressed offset "));
      CHECK(absl::StrContains(message, absl::StrCat("plain offset ", outcome.plain.size(), ")")));
      // libzstd keeps the last block until its checksum has been seen.
      if (at != file.size() / 2 && kind.compression != Compression::kZstd)
        CHECK(outcome.plain.size() == plain.size());
    }
  }
  std::string bad = Gzip(plain);
  bad[bad.size() - 8] ^= 1;
  CHECK(ReadAll(bad, Compression::kGzip).error.message() ==
        absl::StrCat("bad gzip data: checksum or length in the trailer does not match (memory, "
                     "compressed offset ",
                     bad.size(), ", plain offset 300000)"));
}

TEST_CASE("Anything behind the last gzip member is an error, zeros too") {
  const std::string file = Gzip("abc");
  for (const std::string& more :
       {std::string("x"), std::string("\0", 1), std::string(1000, '\0'), std::string("\0x", 2),
        std::string("\x1f\x8a"), std::string("\0", 1) + file}) {
    const Outcome outcome = ReadAll(file + more, Compression::kGzip, 16);
    CHECK(outcome.plain == "abc");
    CHECK(absl::StrContains(std::string(outcome.error.message()), "behind the last member"));
  }
}

TEST_CASE("Anything behind the end of zlib data, or the last zstd frame, is an error, zeros too") {
  for (const Kind& kind : kKinds) {
    if (kind.compression != Compression::kZlib && kind.compression != Compression::kZstd) continue;
    const std::string file = kind.compress("abc");
    for (const std::string& more : {std::string("x"), std::string("\0", 1), std::string(1000, '\0'),
                                    std::string("\0x", 2), std::string("\0", 1) + file}) {
      INFO(CompressionName(kind.compression) << " and " << more.size() << " bytes");
      const Outcome outcome = ReadAll(file + more, kind.compression, 16);
      CHECK(outcome.plain == "abc");
      CHECK(outcome.error.code() == absl::StatusCode::kDataLoss);
    }
  }
}

TEST_CASE("fault 9: a wrongly declared compression is named, with what the file looks like") {
  const uint64_t length = 3;
  const uint32_t crc = MaskCrc32c(Crc32cOfU64(length));
  std::string record(reinterpret_cast<const char*>(&length), 8);
  record.append(reinterpret_cast<const char*>(&crc), 4);
  record += "abc....";
  const struct {
    std::string file;
    Compression declared;
    std::string looks;
  } cases[] = {
      {record, Compression::kGzip,
       "GZIP but does not begin as such a file does: it looks like plain TFRecord"},
      {record, Compression::kZlib,
       "ZLIB but does not begin as such a file does: it looks like plain TFRecord"},
      {record, Compression::kZstd,
       "ZSTD but does not begin as such a file does: it looks like plain TFRecord"},
      {"some text", Compression::kGzip, "GZIP but does not begin as such a file does (memory"},
      {Zstd("abc"), Compression::kGzip,
       "GZIP but does not begin as such a file does: it looks like zstd"},
      {Zlib("abc"), Compression::kGzip,
       "GZIP but does not begin as such a file does: it looks like zlib"},
      {Gzip("abc"), Compression::kZlib,
       "ZLIB but does not begin as such a file does: it looks like gzip"},
      {Gzip("abc"), Compression::kZstd,
       "ZSTD but does not begin as such a file does: it looks like gzip"},
  };
  for (const auto& wrong : cases) {
    const Outcome outcome = ReadAll(wrong.file, wrong.declared);
    CHECK(outcome.error.code() == absl::StatusCode::kDataLoss);
    CHECK(outcome.plain.empty());
    CHECK_THAT(std::string(outcome.error.message()), Catch::Contains(wrong.looks));
  }
}

TEST_CASE("The names of compressions, and an unknown one is an error that lists them") {
  for (const char* name : {"NONE", "GZIP", "ZLIB", "ZSTD"}) {
    const auto compression = CompressionFromName(name);
    REQUIRE(compression.ok());
    CHECK(std::string(CompressionName(*compression)) == name);
  }
  CHECK(*CompressionFromName("") == Compression::kNone);
  CHECK(CompressionFromName("gzip").status().message() ==
        "unknown compression: expected \"\", NONE, GZIP, ZLIB or ZSTD, found \"gzip\"");
}

TEST_CASE("Skipping goes to the same place as reading") {
  const std::string plain = Sample(200000);
  for (const Kind& kind : kKinds) {
    for (const size_t skip : {0, 1, 150000, 200000, 300000}) {
      auto stream = OpenStream(InMemory(kind.compress(plain)), kind.compression, 1000);
      REQUIRE(stream.ok());
      ByteWindow window(*std::move(stream), ~uint64_t{0});
      REQUIRE(window.Skip(skip).ok());
      REQUIRE(window.Ensure(plain.size()).ok());
      CHECK((std::string(window.data(), window.data() + window.size()) ==
             plain.substr(std::min(skip, plain.size()))));
    }
  }
}

TEST_CASE("A compressed file that shrinks or fails while it is read is an error") {
  for (const Kind& kind : kKinds) {
    const std::string bytes = kind.compress(Sample(100000));
    auto shrunk = InMemory(bytes);
    auto stream = OpenStream(shrunk, kind.compression, 1000);
    REQUIRE(stream.ok());
    shrunk->Shrink(bytes.size() / 2);
    test::StreamPieces pieces(*std::move(stream));
    absl::StatusOr<absl::string_view> piece = "";
    do piece = pieces.Read(200000);
    while (piece.ok() && !piece->empty());
    CHECK(piece.status().code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StrContains(std::string(piece.status().message()), "became shorter"));

    auto failing = InMemory(bytes);
    stream = OpenStream(failing, kind.compression, 1000);
    REQUIRE(stream.ok());
    failing->Fail();
    CHECK(test::StreamPieces(*std::move(stream)).Read(200000).status().code() ==
          absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace penstock
