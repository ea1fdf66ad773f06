#include "io/array/zip_directory.h"

#include <string>

#include "tests/support/arrays.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file.h"

namespace penstock {
namespace {

using test::Little;
using test::Zip;
using test::ZipPart;

const std::string kText = "some text that is repeated, that is repeated, that is repeated";

// What the member holds, read as its user does.
absl::StatusOr<std::string> Contents(RandomAccessFile& file, const ZipMember& member) {
  std::string out(member.plain_bytes, '?');
  const absl::Span<uint8_t> bytes(reinterpret_cast<uint8_t*>(out.data()), out.size());
  if (member.deflated) {
    if (absl::Status status = InflateWhole(file, member, bytes); !status.ok()) return status;
    return out;
  }
  absl::StatusOr<size_t> read = file.ReadAt(member.data_offset, bytes);
  if (!read.ok()) return read.status();
  if (*read != out.size() || ExtendCrc32(0, bytes) != member.crc32)
    return absl::DataLossError("checksum");
  return out;
}

TEST_CASE("zip: members of every kind are found and hold what was put in") {
  std::string long_text;
  for (int64_t i = 0; i < 200000; ++i) long_text += static_cast<char>(i * i >> 7);
  const std::vector<ZipPart> parts = {{.name = "stored.npy", .plain = kText},
                                      {.name = "folder/", .plain = ""},
                                      {.name = "deflated.npy", .plain = kText, .deflated = true},
                                      {.name = "wide", .plain = "wide one", .zip64 = true},
                                      {.name = "", .plain = "no name", .extra = "more of it"},
                                      {.name = "empty", .plain = ""},
                                      {.name = "nothing", .plain = "", .deflated = true},
                                      {.name = "long", .plain = long_text, .deflated = true}};
  for (const bool zip64 : {false, true}) {
    for (const std::string& comment :
         {std::string(), std::string("PK\x05\x06 in a comment"), std::string(65535, 'c')}) {
      test::MemoryFile file(Zip(parts, zip64, comment));
      auto members = ReadZipDirectory(file);
      INFO(members.status().ToString());
      REQUIRE(members.ok());
      REQUIRE(members->size() == parts.size() - 1);
      size_t i = 0;
      for (const ZipMember& member : *members) {
        if (parts[i].name == "folder/") ++i;
        INFO(parts[i].name);
        CHECK(member.name == parts[i].name);
        CHECK(member.deflated == parts[i].deflated);
        auto contents = Contents(file, member);
        INFO(contents.status().ToString());
        REQUIRE(contents.ok());
        CHECK(*contents == parts[i].plain);
        ++i;
      }
    }
  }
}

TEST_CASE("zip: the beginning of a deflated member is inflated alone") {
  test::MemoryFile file(Zip({{.name = "a", .plain = kText + kText, .deflated = true}}));
  const auto members = ReadZipDirectory(file);
  REQUIRE(members.ok());
  std::vector<uint8_t> out(20);
  const auto size = InflateBeginning(file, members->front(), absl::MakeSpan(out));
  REQUIRE(size.ok());
  CHECK(*size == 20);
  CHECK(std::string(out.begin(), out.end()) == kText.substr(0, 20));
}

TEST_CASE("fault 20a: zip: what is damaged or not supported is refused with the reason") {
  const std::string good = Zip({{.name = "name", .plain = kText}});
  const size_t directory = good.find("PK\x01\x02");
  const size_t end = good.find("PK\x05\x06");
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string changed = good;
    changed.replace(at, bytes.size(), bytes);
    return changed;
  };
  std::string locator64 = Zip({{.name = "name", .plain = kText}}, /*zip64_end=*/true);
  locator64.replace(locator64.find("PK\x06\x07") + 8, 8, Little(UINT64_MAX - 10, 8));
  std::string end64 = Zip({{.name = "name", .plain = kText}}, /*zip64_end=*/true);
  end64.replace(end64.find("PK\x06\x06") + 40, 16, Little(UINT64_MAX, 8) + Little(5, 8));
  const std::string wide = Zip({{.name = "name", .plain = kText}}, /*zip64_end=*/true);
  const size_t wide_directory = wide.find("PK\x01\x02");
  const size_t wide_end = wide.find("PK\x06\x06");
  std::string disks64 = wide;
  disks64.replace(wide_end + 16, 4, Little(1, 4));
  std::string overlong64 = wide;
  overlong64.replace(wide_end + 40, 8, Little(wide_end - wide_directory + 1, 8));
  // A ZIP64 field that ends inside of the last number that it should hold.
  std::string short64 = Zip({{.name = "name", .plain = kText, .zip64 = true}});
  short64.replace(short64.find(Little(1, 2) + Little(24, 2)) + 2, 2, Little(20, 2));
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {disks64, "several disks"},
      {overlong64, "lies outside of the file"},
      {short64, "a ZIP64 field is missing"},
      {with(26, Little(5, 2)), "not the one of the directory"},
      {"", "no directory at its end"},
      {"PK", "no directory at its end"},
      {good.substr(0, good.size() - 1), "no directory at its end"},
      {good + "x", "no directory at its end"},
      {with(end + 4, Little(1, 2)), "several disks"},
      {with(end + 16, Little(good.size(), 4)), "lies outside of the file"},
      {with(end + 12, Little(1 << 30, 4)), "lies outside of the file"},
      {with(end + 10, Little(9, 2)), "too short for its entries"},
      {with(end + 16, Little(UINT32_MAX, 4)), "lies outside of the file"},
      {locator64, "locator points behind itself"},
      {end64, "lies outside of the file"},
      {with(directory, "XX"), "its directory ends early"},
      {with(directory + 28, Little(60000, 2)), "its directory ends early"},
      {with(directory + 20, Little(UINT32_MAX, 4)), "a ZIP64 field is missing"},
      {with(directory + 20, Little(good.size(), 4)), "bytes lie outside of the file"},
      {with(directory + 24, Little(5, 4)), "sizes of \"name\" do not agree"},
      {with(directory + 42, Little(good.size(), 4)), "member lies outside of the file"},
      {with(directory + 42, Little(1, 4)), "not the one of the directory"},
      {with(30, "N"), "not the one of the directory"},
      {Zip({{.name = "a", .plain = kText, .flags = 1}}), "\"a\" is encrypted"},
      {Zip({{.name = "a", .plain = kText, .method = 14}}), "compressed by method 14"},
  };
  for (const auto& c : cases) {
    test::MemoryFile file(c.bytes);
    const auto members = ReadZipDirectory(file);
    INFO(c.message << "; found " << members.status().ToString());
    CHECK_FALSE(members.ok());
    CHECK(std::string(members.status().message()).find(c.message) != std::string::npos);
  }
}

// A plain size that no deflate data can have would be memory for nothing.
TEST_CASE("fault 20a: zip: a deflated member cannot claim more than deflate can make") {
  std::string bytes = Zip({{.name = "a", .plain = kText, .deflated = true}});
  const size_t directory = bytes.find("PK\x01\x02");
  bytes.replace(directory + 24, 4, Little(uint32_t{3} << 30, 4));
  test::MemoryFile file(bytes);
  CHECK(
      std::string(ReadZipDirectory(file).status().message()).find("sizes of \"a\" do not agree") !=
      std::string::npos);
}

TEST_CASE("zip: deflate data that is damaged, cut or of another checksum is an error") {
  const std::string good = Zip({{.name = "a", .plain = kText + kText, .deflated = true}});
  test::MemoryFile whole(good);
  const auto members = ReadZipDirectory(whole);
  REQUIRE(members.ok());
  const ZipMember member = members->front();
  REQUIRE(Contents(whole, member).ok());
  // The last bits may be padding, or end what is whole already.
  int refused = 0;
  const auto check = [&](const absl::StatusOr<std::string>& contents) {
    refused += absl::IsDataLoss(contents.status());
    CHECK((absl::IsDataLoss(contents.status()) || *contents == kText + kText));
  };
  for (uint64_t at = 0; at < member.data_bytes; ++at) {
    std::string changed = good;
    changed[member.data_offset + at] ^= 0x10;
    test::MemoryFile file(changed);
    check(Contents(file, member));
  }
  for (uint64_t bytes = 0; bytes < member.data_bytes; ++bytes) {
    ZipMember cut = member;
    cut.data_bytes = bytes;
    check(Contents(whole, cut));
  }
  CHECK(refused >= static_cast<int>(2 * member.data_bytes) - 6);
  ZipMember longer = member;
  longer.plain_bytes += 1;
  CHECK(Contents(whole, longer).status().code() == absl::StatusCode::kDataLoss);
  ZipMember shorter = member;
  shorter.plain_bytes -= 1;
  CHECK(Contents(whole, shorter).status().code() == absl::StatusCode::kDataLoss);
  // What is behind the data is never taken for some of it, whatever the checksum says.
  const std::string padded = kText + kText + "??";
  longer.plain_bytes = padded.size();
  longer.crc32 = ExtendCrc32(0, {reinterpret_cast<const uint8_t*>(padded.data()), padded.size()});
  CHECK(Contents(whole, longer).status().code() == absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock
