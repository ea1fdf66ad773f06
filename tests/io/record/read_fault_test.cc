// Reads that fail, come short or come late, under each of the readers.
#include <string>
#include <vector>

#include "io/record/record_index.h"
#include "io/record/tfrecord_access.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/faulty_files.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"

namespace penstock {
namespace {

using test::FaultyFiles;
using test::Found;
using test::Gzip;
using test::ReadFault;

std::string Records() {
  std::string bytes;
  for (int i = 0; i < 900; ++i) bytes += test::Frame(std::string(i % 9 == 0 ? 9000 : i, 'x'));
  return bytes;
}

// Reads a file by each reader in turn, after `faults`.
std::vector<Found> ReadByAll(const test::ReadFaults& faults, std::vector<int64_t>* pauses_ns) {
  std::vector<Found> all;
  for (int reader = 0; reader < 3; ++reader) {
    FaultyFiles files({{"plain", Records()}, {"gzip", test::Gzip(Records())}}, faults);
    auto file = files.Open(reader == 2 ? "gzip" : "plain");
    REQUIRE(file.ok());
    all.push_back(
        reader == 0
            ? test::ReadChunks(**file)
            : test::ReadStream(*file, reader == 1 ? Compression::kNone : Compression::kGzip, {}));
    pauses_ns->insert(pauses_ns->end(), files.pauses_ns().begin(), files.pauses_ns().end());
  }
  return all;
}

const Found& Sound() {
  static const Found sound = test::ReadChunks(*test::InMemory(Records()));
  return sound;
}

TEST_CASE("fault 26: EIO once, at any read, is retried after a pause and not noticed") {
  for (uint64_t n = 0; n < 40; ++n) {
    std::vector<int64_t> pauses_ns;
    for (const Found& found : ReadByAll(
             [n](uint64_t call) { return ReadFault{.error = call == n ? EIO : 0}; }, &pauses_ns)) {
      CHECK((found == Sound()));
    }
    for (const int64_t pause_ns : pauses_ns) CHECK(pause_ns == kFirstPauseNs);
    if (n == 0) CHECK(pauses_ns.size() == 3);
  }
}

TEST_CASE("fault 26: EIO always, from any read on, is an error behind the records before it") {
  for (uint64_t n = 0; n < 40; n += 3) {
    std::vector<int64_t> pauses_ns;
    for (const Found& found : ReadByAll(
             [n](uint64_t call) { return ReadFault{.error = call >= n ? EIO : 0}; }, &pauses_ns)) {
      if (n == 0) CHECK_FALSE(found.error.ok());
      if (found.error.ok()) {  // it needed fewer reads than n
        CHECK((found == Sound()));
        continue;
      }
      CHECK_THAT(std::string(found.error.message()), Catch::Contains("cannot read "));
      CHECK_THAT(std::string(found.error.message()), Catch::Contains(" at offset "));
      CHECK(found.records.size() < Sound().records.size());
      CHECK((found.records ==
             std::vector<std::string>(Sound().records.begin(),
                                      Sound().records.begin() + found.records.size())));
    }
    // Bounded: the pauses grow, and there are two for three tries.
    if (n == 0) {
      CHECK(
          (pauses_ns == std::vector<int64_t>{kFirstPauseNs, 4 * kFirstPauseNs, kFirstPauseNs,
                                             4 * kFirstPauseNs, kFirstPauseNs, 4 * kFirstPauseNs}));
    }
  }
}

TEST_CASE("fault 26: an error that does not pass is not retried") {
  FaultyFiles files({{"a", "bytes"}}, [](uint64_t) { return ReadFault{.error = ESTALE}; });
  uint8_t out[4];
  CHECK(!(*files.Open("a"))->ReadAt(0, absl::MakeSpan(out)).ok());
  CHECK(files.calls() == 1);
  CHECK(files.pauses_ns().empty());
}

TEST_CASE("fault 27: interrupted and short reads and EAGAIN are invisible") {
  std::vector<int64_t> pauses_ns;
  const std::vector<Found> all = ReadByAll(
      [](uint64_t call) {
        if (call % 5 == 1 || call % 5 == 2) return ReadFault{.error = EINTR};
        if (call % 5 == 3) return ReadFault{.error = EAGAIN};
        return ReadFault{.bytes_max = call % 7 == 0 ? 1 : 1 + call * 977 % 5000};
      },
      &pauses_ns);
  for (const Found& found : all) CHECK((found == Sound()));
}

TEST_CASE("fault 24: a file that is truncated between two reads is an error, with any policy") {
  for (uint64_t n = 0; n < 3; ++n) {
    for (const OnDamage on_damage : {OnDamage::kFail, OnDamage::kSkipRecord}) {
      FaultyFiles files({{"a", Records()}},
                        [n](uint64_t call) { return ReadFault{.truncate = call == n}; });
      auto file = files.Open("a");
      const Found found = test::ReadChunks(**file, on_damage);
      CHECK(found.error.code() == absl::StatusCode::kDataLoss);
      CHECK(IsFileShrunk(found.error));
      CHECK_THAT(std::string(found.error.message()), Catch::Contains("became shorter"));
    }
  }
}

TEST_CASE("fault 24: a compressed file that is truncated is an error, with any policy") {
  const std::string compressed = Gzip(Records());
  for (const OnDamage on_damage : {OnDamage::kFail, OnDamage::kSkipRecord}) {
    FaultyFiles files({{"a", compressed}},
                      [](uint64_t call) { return ReadFault{.truncate = call == 1}; });
    auto file = files.Open("a");
    const Found found = test::ReadStream(*file, Compression::kGzip, {.on_damage = on_damage});
    CHECK(found.error.code() == absl::StatusCode::kDataLoss);
    CHECK(IsFileShrunk(found.error));
    CHECK(found.damage.empty());
  }
}

TEST_CASE("fault 25: what a file grows by while it is open is not read") {
  FaultyFiles files({{"a", Records()}}, [](uint64_t) { return ReadFault{}; });
  auto file = files.Open("a");
  files.Replace("a", Records() + test::Frame("more") + "and garbage");
  CHECK((test::ReadChunks(**file) == Sound()));
  CHECK((test::ReadStream(*file, Compression::kNone, {}) == Sound()));
  NoIndexStore store;
  const auto index = LoadOrBuildIndex(*file, TfrecordAccess(), store, {});
  REQUIRE(index.ok());
  CHECK((*index)->size() == Sound().records.size());
}

}  // namespace
}  // namespace penstock
