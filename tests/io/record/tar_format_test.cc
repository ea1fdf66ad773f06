#include "io/record/tar_format.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/inflate/byte_stream.h"
#include "io/record/near_records.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"
#include "io/record/scan_progress.h"
#include "io/record/tar_head.h"
#include "io/record/tar_scan.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file.h"
#include "tests/support/tar_members.h"

namespace penstock {
namespace {

using test::InMemory;
using test::TarArchive;

using Members = std::vector<std::pair<std::string, std::string>>;  // extension, data
struct Sample {
  std::string key;
  Members members;

  friend bool operator==(const Sample&, const Sample&) = default;
};
using Samples = std::vector<Sample>;

struct Golden {
  const char* name;
  const char* gzip;
  Samples samples;
};

const std::vector<Golden>& Goldens() {
  static const auto* const goldens = new std::vector<Golden>{
#include "tests/golden/tar_samples.inc"
  };
  return *goldens;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return absl::ascii_tolower(c); });
  return text;
}

Sample SampleOf(absl::Span<const uint8_t> bytes) {
  Sample sample;
  const absl::Status status = ForEachTarMember(bytes, &sample.key, [&](const TarMember& member) {
    sample.members.emplace_back(Lower(std::string(member.extension)),
                                std::string(member.data.begin(), member.data.end()));
    return absl::OkStatus();
  });
  INFO(status.message());
  REQUIRE(status.ok());
  return sample;
}

struct Found {
  Samples samples;
  std::vector<uint64_t> offsets;
  std::vector<Damage> damage;
  absl::Status error;
};

Sample LateSampleOf(RandomAccessFile& file, uint64_t offset, uint32_t length) {
  Arena arena;
  const auto read = TarFormat()->access()->Read(file, offset, length, arena);
  REQUIRE(read.ok());
  return SampleOf(*read);
}

// Adds what the stream finds, in order, behind what was found; late ones by what reads them later.
Found ReadByStream(const std::string& bytes, Compression compression, OnDamage on_damage,
                   uint64_t start, Found found = {}) {
  const auto file = InMemory(bytes);
  auto stream = RecordStream::Open(file, compression,
                                   {.format = TarFormat(),
                                    .on_damage = on_damage,
                                    .start_offset = start,
                                    .start_ordinal = found.samples.size()});
  REQUIRE(stream.ok());
  RecordChunk chunk;
  do {
    (*stream)->Next(&chunk);
    for (const RecordChunk::Record& record : chunk.records) {
      found.samples.push_back(record.late ? LateSampleOf(*file, record.offset, record.length)
                                          : SampleOf({chunk.data(record), record.length}));
      found.offsets.push_back(record.offset);
    }
    found.damage.insert(found.damage.end(), chunk.damage.begin(), chunk.damage.end());
    found.error = chunk.error;
  } while (chunk.error.ok() && !chunk.end_of_file);
  return found;
}

// Cut out of memory until something is not near, or is unusual, and by the stream from there on.
Found ReadNear(const std::string& bytes, OnDamage on_damage, uint64_t at_a_time, uint64_t at) {
  const auto file = InMemory(bytes);
  file->Lend();
  const auto* const records = dynamic_cast<const NearRecords*>(TarFormat()->access());
  REQUIRE(records != nullptr);
  Found found;
  while (true) {
    const NearRecords::Cut cut = records->CutNear(
        *file, at, at_a_time, [&](uint64_t offset, uint32_t length, NearRecords::Parts parts) {
          CHECK(parts.empty() == (length > kLateRecordBytes));
          // A cell of the sample's own length, in which something else was before.
          std::vector<uint8_t> cell;
          for (const auto part : parts) cell.insert(cell.end(), part.begin(), part.end());
          CHECK(cell.size() <= length);
          cell.resize(length, 0xEE);
          found.samples.push_back(parts.empty() ? LateSampleOf(*file, offset, length)
                                                : SampleOf(cell));
          found.offsets.push_back(offset);
        });
    if (cut.is_end) return found;
    if (cut.next_offset == at)
      return ReadByStream(bytes, Compression::kNone, on_damage, at, std::move(found));
    at = cut.next_offset;
  }
}

// In order, by both ways.
Found ReadAll(const std::string& bytes, Compression compression,
              OnDamage on_damage = OnDamage::kFail, uint64_t start = 0) {
  Found found = ReadByStream(bytes, compression, on_damage, start);
  if (compression != Compression::kNone) return found;
  for (const uint64_t at_a_time : {uint64_t{1}, uint64_t{3000}, uint64_t{1} << 40}) {
    const Found near = ReadNear(bytes, on_damage, at_a_time, start);
    CHECK((near.samples == found.samples));
    CHECK(near.offsets == found.offsets);
    CHECK((near.damage == found.damage));
    CHECK(near.error == found.error);
  }
  return found;
}

// In any order, by the index.
Found ReadByIndex(const std::string& bytes, OnDamage on_damage = OnDamage::kFail) {
  const auto file = InMemory(bytes);
  NoIndexStore nowhere;
  const RecordAccess& access = *TarFormat()->access();
  const auto index = LoadOrBuildIndex(file, access, nowhere, {.on_damage = on_damage});
  Found found;
  found.error = index.status();
  if (!index.ok()) return found;
  found.damage = (*index)->damage();
  for (uint64_t i = 0; i < (*index)->size(); ++i) {
    Arena arena;
    const uint64_t offset = (*index)->offset(i);
    CHECK(access.IsAt(*file, offset, (*index)->length(i)));
    CHECK(access.OrdinalOf(file, offset) == i);
    const auto read = access.Read(*file, offset, (*index)->length(i), arena);
    REQUIRE(read.ok());
    found.samples.push_back(SampleOf(*read));
    found.offsets.push_back(offset);
  }
  return found;
}

// Where a scan of memory finds anything, it is what the stream finds, and nothing is damaged.
// Returns whether it does.
bool ScanAgrees(const std::string& bytes, const Found& by_stream) {
  const IndexOptions options;
  ScanProgress progress(options);
  const auto found =
      ScanSoundTar({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, progress);
  REQUIRE(found.ok());
  if (!*found) return false;
  CHECK(by_stream.error.ok());
  CHECK(by_stream.damage.empty());
  REQUIRE((*found)->offsets.size() == by_stream.offsets.size());
  for (uint64_t i = 0; i < by_stream.offsets.size(); ++i)
    CHECK((*found)->offsets[i] == by_stream.offsets[i]);
  if (!by_stream.offsets.empty()) CHECK((*found)->records_end > by_stream.offsets.back());
  CHECK((*found)->records_end <= bytes.size());
  return true;
}

std::string Plain(const std::string& gzip) {
  auto stream = OpenStream(InMemory(gzip), Compression::kGzip);
  REQUIRE(stream.ok());
  std::string plain;
  std::vector<uint8_t> piece(1 << 20);
  while (true) {
    const auto count = (*stream)->Read(absl::MakeSpan(piece));
    REQUIRE(count.ok());
    if (*count == 0) return plain;
    plain.append(piece.begin(), piece.begin() + *count);
  }
}

TEST_CASE("Samples are those of webdataset, in order and in any order") {
  REQUIRE(Goldens().size() > 10);
  for (const Golden& golden : Goldens()) {
    INFO(golden.name);
    Samples expected = golden.samples;
    for (Sample& sample : expected) {
      for (auto& [extension, data] : sample.members) data = absl::HexStringToBytes(data);
    }
    const std::string gzip = absl::HexStringToBytes(golden.gzip);
    const std::string plain = Plain(gzip);
    for (const Found& found : {ReadAll(gzip, Compression::kGzip),
                               ReadAll(plain, Compression::kNone), ReadByIndex(plain)}) {
      CHECK(found.error.ok());
      CHECK((found.samples == expected));
    }
    CHECK(ScanAgrees(plain, ReadAll(plain, Compression::kNone)));
  }
}

TEST_CASE("Samples around the limits of a window, of cells and of a piece come whole") {
  std::vector<std::pair<std::string, std::string>> members;
  Samples samples;
  for (const size_t size :
       {0, 511, 512, 513, 7168, 7169, 8192, 65536, 131072, 200000, 300000, 1, 2}) {
    const std::string key = absl::StrCat("k", samples.size());
    const std::string data(size, static_cast<char>('a' + samples.size()));
    members.emplace_back(key + ".bin", data);
    members.emplace_back(key + ".cls", "1");
    samples.push_back({key, {{"bin", data}, {"cls", "1"}}});
  }
  const std::string bytes = TarArchive(members);
  const Found all = ReadAll(bytes, Compression::kNone);
  CHECK((all.samples == samples));
  CHECK((ReadByIndex(bytes).samples == samples));
  CHECK(ReadByIndex(bytes).offsets == all.offsets);
  CHECK(ScanAgrees(bytes, all));
  for (size_t i = 0; i < samples.size(); ++i) {
    const Found rest = ReadAll(bytes, Compression::kNone, OnDamage::kFail, all.offsets[i]);
    CHECK((rest.samples == Samples(samples.begin() + i, samples.end())));
  }
}

TEST_CASE("A path that begins as the sample before it may be of another sample, or of none") {
  const std::string bytes = TarArchive({{"a.bin", "1"},
                                        {"a.x/c.bin", "2"},
                                        {"a.x/c.cls", "3"},
                                        {"__a.b", "4"},
                                        {"__a.b__", "of the archive"},
                                        {"__a.c", "5"},
                                        {"ab.bin", "6"},
                                        {"a.bin", "7"},
                                        {"a", "of none"},
                                        {"a.", "8"}});
  const Samples samples = {{"a", {{"bin", "1"}}},
                           {"a.x/c", {{"bin", "2"}, {"cls", "3"}}},
                           {"__a", {{"b", "4"}, {"c", "5"}}},
                           {"ab", {{"bin", "6"}}},
                           {"a", {{"bin", "7"}, {"", "8"}}}};
  CHECK((ReadAll(bytes, Compression::kNone).samples == samples));
  CHECK((ReadByIndex(bytes).samples == samples));
}

TEST_CASE("A long member of no sample behind a long sample costs none") {
  std::vector<std::pair<std::string, std::string>> members;
  Samples samples;
  for (int i = 0; i < 30; ++i) {
    const std::string key = absl::StrCat("k", i);
    const std::string data(i % 3 == 0 ? 300'000 : 9'000 * (i % 2) + 10, 'a');
    members.emplace_back(key + ".bin", data);
    members.emplace_back("README", std::string(i % 4 == 1 ? 10 : 400'000, 'r'));
    samples.push_back({key, {{"bin", data}}});
  }
  const std::string bytes = TarArchive(members);
  const Found all = ReadAll(bytes, Compression::kNone);
  CHECK(all.error.ok());
  CHECK((all.samples == samples));
  CHECK((ReadByIndex(bytes).samples == samples));
  CHECK(ScanAgrees(bytes, all));
}

// Two members for each of five keys, of which `index` counts the members.
std::string TenMembers() {
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 10; ++i)
    members.emplace_back(absl::StrCat("000", i / 2, i % 2 == 0 ? ".jpg" : ".cls"),
                         std::string(600, 'x'));
  return TarArchive(members);
}

TEST_CASE("A damaged head costs its own sample, whichever member and byte it is") {
  const std::string good = TenMembers();
  constexpr size_t kMember = 512 + 1024;
  for (int member = 0; member < 10; ++member) {
    for (const size_t at : {3, 5, 110, 124, 130, 150, 156, 257, 400}) {
      CAPTURE(member, at);
      std::string bad = good;
      bad[member * kMember + at] ^= 0x11;
      const Found failed = ReadAll(bad, Compression::kNone);
      CHECK(absl::IsDataLoss(failed.error));
      CHECK(absl::StrContains(failed.error.message(),
                              absl::StrCat("offset ", member * kMember, ")")));
      const Found skipped = ReadAll(bad, Compression::kNone, OnDamage::kSkipRecord);
      CHECK(skipped.error.ok());
      CHECK(skipped.damage.size() == 1);
      std::vector<std::string> keys;
      for (const Sample& sample : skipped.samples) {
        CHECK(sample.members.size() == 2);
        keys.push_back(sample.key);
      }
      std::vector<std::string> expected;
      for (int key = 0; key < 5; ++key) {
        if (key != member / 2) expected.push_back(absl::StrCat("000", key));
      }
      CHECK(keys == expected);
      const Found by_index = ReadByIndex(bad, OnDamage::kSkipRecord);
      CHECK((by_index.samples == skipped.samples));
      CHECK((by_index.damage == skipped.damage));
    }
  }
}

TEST_CASE("Of a head that is all rubbish the samples around it are left out") {
  std::string bad = TenMembers();
  constexpr size_t kMember = 512 + 1024;
  for (size_t at = 0; at < 512; ++at) bad[4 * kMember + at] = static_cast<char>(at * 37);
  const Found skipped = ReadAll(bad, Compression::kNone, OnDamage::kSkipRecord);
  CHECK(skipped.error.ok());
  REQUIRE(skipped.samples.size() == 3);
  CHECK(skipped.samples[0].key == "0000");
  CHECK(skipped.samples[1].key == "0003");
  CHECK((skipped.damage ==
         std::vector<Damage>{{2 * kMember, 4 * kMember, DamageReason::kLengthChecksum}}));
}

TEST_CASE("Of damage whose owner nothing tells the samples around it are left out") {
  std::string bad = test::TarMember("0000.cls", "b");
  bad[110] ^= 0x11;
  const std::string begin = test::TarMember("0000.jpg", "a");
  const std::string end = test::TarMember("0001.jpg", "c") + test::TarMember("0001.cls", "d") +
                          test::TarMember("0002.jpg", "e") + std::string(1024, '\0');
  const struct {
    const char* name;
    std::string damaged;
  } cases[] = {
      {"behind a pax header with a path of its own",
       test::TarMember("PaxHeaders/0000.cls", "11 mtime=1\n", 'x') + bad},
      {"in front of another one", bad + test::TarMember("x.y", "no pax lines", 'x')},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const std::string bytes = begin + c.damaged + end;
    for (const Found& found : {ReadAll(bytes, Compression::kNone, OnDamage::kSkipRecord),
                               ReadByIndex(bytes, OnDamage::kSkipRecord)}) {
      CHECK(found.error.ok());
      CHECK((found.samples == Samples{{"0002", {{"jpg", "e"}}}}));
      CHECK(found.damage.size() == 1);
    }
  }
}

TEST_CASE("Headers in front of a member have one limit together") {
  const std::string link = test::TarMember("x", std::string(400 << 10, 'l'), 'K');
  const std::string member = test::TarMember("0001.jpg", "d") + std::string(1024, '\0');
  CHECK(ReadAll(link + link + member, Compression::kNone).samples.size() == 1);
  CHECK(absl::StrContains(ReadAll(link + link + link + member, Compression::kNone).error.message(),
                          "headers of a path longer than limit"));
}

TEST_CASE("A member of no sample may be the one that is cut") {
  const std::string cut = test::TarMember("0001.jpg", "d") +
                          test::TarMember("README", std::string(2000, 'r')).substr(0, 1024);
  CHECK(absl::StrContains(ReadAll(cut, Compression::kNone).error.message(),
                          "the file ends inside of a tar member"));
  const Found skipped = ReadAll(cut, Compression::kNone, OnDamage::kSkipRecord);
  CHECK(skipped.error.ok());
  CHECK(skipped.damage.size() == 1);
}

TEST_CASE("A tar file may be cut anywhere") {
  const std::string good = TenMembers();
  const Found all = ReadAll(good, Compression::kNone);
  for (size_t cut = 0; cut < good.size(); cut += 89) {
    CAPTURE(cut);
    const std::string bytes = good.substr(0, cut);
    const Found failed = ReadAll(bytes, Compression::kNone);
    const Found skipped = ReadAll(bytes, Compression::kNone, OnDamage::kSkipRecord);
    CHECK(skipped.error.ok());
    CHECK(skipped.samples.size() <= all.samples.size());
    CHECK(skipped.damage.empty() == failed.error.ok());
    for (const Sample& sample : skipped.samples) {
      if (failed.error.ok()) continue;
      CHECK(sample.members.size() == 2);
    }
    CHECK((ReadByIndex(bytes, OnDamage::kSkipRecord).samples == skipped.samples));
    CHECK(ScanAgrees(bytes, skipped) == skipped.damage.empty());
  }
}

TEST_CASE("Any byte of a tar file may be another one") {
  const std::string good = TenMembers();
  uint64_t drawn = 1;
  for (int i = 0; i < 2000; ++i) {
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    std::string bad = good;
    bad[(drawn >> 33) % bad.size()] ^= static_cast<char>(1 << (drawn >> 20) % 8);
    const Found skipped = ReadAll(bad, Compression::kNone, OnDamage::kSkipRecord);
    CHECK(skipped.error.ok());
    CHECK((ReadByIndex(bad, OnDamage::kSkipRecord).samples == skipped.samples));
    ScanAgrees(bad, skipped);
    (void)ReadAll(bad, Compression::kNone);
  }
}

TEST_CASE("Members of a kind that is not read are refused by its name") {
  const std::string sparse = test::TarMember("0001.jpg", "", 'S') + std::string(1024, '\0');
  CHECK(absl::StrContains(ReadAll(sparse, Compression::kNone).error.message(), "a sparse member"));
  const std::string volume = test::TarMember("0001.jpg", "", 'M') + std::string(1024, '\0');
  CHECK(
      absl::StrContains(ReadAll(volume, Compression::kNone, OnDamage::kSkipRecord).error.message(),
                        "a member of several volumes"));
  const std::string pax = test::TarMember("x", "22 GNU.sparse.major=1\n", 'x') +
                          test::TarMember("0001.jpg", "d") + std::string(1024, '\0');
  CHECK(absl::StrContains(ReadAll(pax, Compression::kNone).error.message(), "a sparse member"));
}

TEST_CASE("A file that is none says so") {
  CHECK(absl::StrContains(ReadAll(std::string(2000, 'x'), Compression::kNone).error.message(),
                          "is it a tar file?"));
  CHECK(ReadAll("", Compression::kNone).error.ok());
}

TEST_CASE("Bad pax headers and sizes are damage") {
  for (const char* lines :
       {"", "9 path=\n", "x", "99 path=a\n", "6 path\n", "11 size=-12\n", "3 a"}) {
    const std::string text = lines;
    const bool is_empty = text.empty();
    const Found found = ReadAll(test::TarMember("x", text, 'x') + test::TarMember("0001.jpg", "d"),
                                Compression::kNone);
    CAPTURE(text);
    CHECK(found.error.ok() == is_empty);
  }
}

}  // namespace
}  // namespace penstock
