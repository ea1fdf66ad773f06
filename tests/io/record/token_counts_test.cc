#include "io/record/token_counts.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/local_file.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::ScratchFolder;

constexpr char kKey[] = "tokens of a test";

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::shared_ptr<RandomAccessFile> Open(const std::string& path) {
  auto file = LocalFileSystem().Open(path);
  REQUIRE(file.ok());
  return *file;
}

// A data file and its index.
struct Indexed {
  explicit Indexed(const std::vector<uint32_t>& counts) : data(folder / "data") {
    Write(data, "some bytes");
    auto kept = KeepTokenCounts(*Open(data), kKey, TokenCounts(counts), store);
    REQUIRE(kept.ok());
    place = *kept;
  }
  absl::StatusOr<std::shared_ptr<const TokenCounts>> Load(const std::string& key = kKey) {
    return LoadTokenCounts(*Open(data), key, store);
  }

  ScratchFolder folder;
  std::string data;
  FolderIndexStore store{LocalFileSystem(), ""};
  std::string place;
};

TEST_CASE("token counts: 2 bytes a record, or 4 where one needs them") {
  constexpr uint32_t kNone = TokenCounts::kLeftOut;
  const std::vector<std::vector<uint32_t>> kCases = {
      {}, {0}, {1, kNone, 65534}, {1, kNone, 65535}, {TokenCounts::kMost, 0, kNone}};
  for (const std::vector<uint32_t>& counts : kCases) {
    Indexed indexed(counts);
    const auto loaded = indexed.Load();
    INFO(loaded.status().ToString());
    REQUIRE(loaded.ok());
    std::vector<uint32_t> found;
    for (uint64_t i = 0; i < (*loaded)->size(); ++i) found.push_back((**loaded)[i]);
    CHECK(found == counts);
    const auto looked = LookAtTokenCounts(*Open(indexed.data), kKey, indexed.store);
    REQUIRE(looked.ok());
    CHECK((looked->sums == (*loaded)->sums()));
    CHECK(looked->place == indexed.place);
  }
  Indexed narrow({5, 65534});
  Indexed wide({5, 65535});
  CHECK(std::filesystem::file_size(narrow.place) + 4 == std::filesystem::file_size(wide.place));
  const TokenCounts::Sums sums = (*narrow.Load())->sums();
  CHECK((sums == TokenCounts::Sums{2, 0, 65539}));
}

TEST_CASE("token counts: the index lies beside the data, under a name of its key") {
  Indexed indexed({1, 2});
  CHECK(absl::StartsWith(indexed.place, indexed.folder / ".data.tokens-"));
  CHECK(absl::EndsWith(indexed.place, kIndexSuffix));
  CHECK(absl::IsNotFound(indexed.Load("tokens of a tesT").status()));
  // An index of another key does not take its place.
  REQUIRE(KeepTokenCounts(*Open(indexed.data), "another", TokenCounts(std::vector<uint32_t>{7}),
                          indexed.store)
              .ok());
  CHECK((*indexed.Load())->size() == 2);
}

TEST_CASE("token counts: each bit that differs is seen") {
  Indexed indexed({1, 2, TokenCounts::kLeftOut, 300});
  const std::string sound = Read(indexed.place);
  for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
    INFO(bit);
    std::string damaged = sound;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    Write(indexed.place, damaged);
    const auto loaded = indexed.Load();
    // But for what pads the key.
    const size_t byte = bit / 8;
    const size_t end_of_key = 128 + sizeof(kKey) - 1;
    if (byte >= end_of_key && byte < (end_of_key + 7) / 8 * 8) continue;
    CHECK(absl::IsDataLoss(loaded.status()));
  }
  for (size_t size = 0; size < sound.size(); ++size) {
    Write(indexed.place, sound.substr(0, size));
    CHECK_FALSE(indexed.Load().ok());
  }
  Write(indexed.place, sound + "x");
  CHECK_FALSE(indexed.Load().ok());
  Write(indexed.place, sound);
  CHECK(indexed.Load().ok());
}

TEST_CASE("token counts: a number that no document has is seen, though all checksums hold") {
  Indexed indexed({TokenCounts::kMost + 1, 0});
  const auto loaded = indexed.Load();
  CHECK(absl::IsDataLoss(loaded.status()));
  CHECK(absl::StrContains(loaded.status().message(), "a count is larger than limit"));
  CHECK(absl::StrContains(loaded.status().message(), indexed.place));
}

TEST_CASE("token counts: data that changed has none") {
  Indexed indexed({1, 2});
  Write(indexed.data, "other data");
  const auto loaded = indexed.Load();
  CHECK(absl::IsDataLoss(loaded.status()));
  CHECK(absl::StrContains(loaded.status().message(), "it belongs to other data"));
  CHECK(absl::StrContains(loaded.status().message(), indexed.place));
}

TEST_CASE("token counts: a copy of both is as good, unless the data are newer") {
  Indexed indexed({1, 2});
  const ScratchFolder other;
  namespace fs = std::filesystem;
  const std::string data = other / "data";
  const std::string index = other / fs::path(indexed.place).filename();
  fs::copy_file(indexed.data, data);
  fs::copy_file(indexed.place, index);
  FolderIndexStore store(LocalFileSystem(), "");
  CHECK(LoadTokenCounts(*Open(data), kKey, store).ok());
  fs::last_write_time(data, fs::last_write_time(index) + std::chrono::hours(1));
  const absl::Status status = LoadTokenCounts(*Open(data), kKey, store).status();
  CHECK(absl::StrContains(status.message(), "it is older than the data"));
}

}  // namespace
}  // namespace penstock
