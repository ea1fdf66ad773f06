// Records in a random order, copied out of maps of files that may be cut meanwhile.
#include "server/engine/stage/global_records.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/record/fixed_length_format.h"
#include "io/record/tar_format.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tar_members.h"

namespace penstock {
namespace {

constexpr size_t kRecords = 100;

// Of zeros behind the first byte, so that only the file tells whether it still has them.
std::string Data(size_t number, size_t bytes) {
  std::string data(bytes, '\0');
  data[0] = static_cast<char>('a' + number % 26);
  return data;
}

TEST_CASE("fault 24: records without checksums of a file that is cut in its map are no zeros") {
  const test::ScratchFolder folder;
  std::vector<std::pair<std::string, std::string>> members;
  std::string even;
  for (size_t i = 0; i < kRecords; ++i) {
    members.emplace_back(absl::StrCat(i, ".bin"), std::string(3000, 'x'));
    even += Data(i, 3584);
  }
  const struct {
    const char* name;
    std::shared_ptr<const RecordFormat> format;
    std::string bytes;
  } cases[] = {{"tar", TarFormat(), test::TarArchive(members)},
               {"fixed_length", FixedLengthFormat({.record_bytes = 3584}), even}};
  constexpr size_t kRecord = 3584;
  for (const auto& c : cases) {
    // In the middle of a page, at the end of one, and within a record whose head is there.
    for (const size_t left : {50 * kRecord + 600, size_t{4096 * 40}, 70 * kRecord + 2000}) {
      CAPTURE(c.name, left);
      const std::string path = folder / "data";
      std::ofstream(path, std::ios::binary) << c.bytes;
      const auto opened = LocalFileSystem().Open(path);
      REQUIRE(opened.ok());
      const Manifest manifest = {{.path = path,
                                  .size_bytes = c.bytes.size(),
                                  .indexed = c.format,
                                  .version = (*opened)->version()}};
      FileTable files(LocalFileSystem(), manifest);
      IndexedFiles indexed;
      indexed.files = {0, 1};
      indexed.format = c.format;
      const auto records = std::make_shared<GlobalRecords>(indexed, GlobalReach(), /*key=*/1);
      absl::Status status;
      REQUIRE(records->Open(files, nullptr, 0, &status));
      REQUIRE(records->size() == kRecords);
      const auto loader = GlobalLoader(records);
      std::vector<RecordRef> refs(kRecords);
      for (size_t i = 0; i < kRecords; ++i) refs[i].offset = i;
      std::vector<uint64_t> offsets;
      for (const RecordRef& ref : refs) offsets.push_back(loader->Locate(ref).offset);
      Arena arena;
      // All of them while it is whole, so that it is mapped.
      std::vector<Column> out(1);
      REQUIRE(loader->Load({refs.data(), kRecords, 1}, files, absl::MakeSpan(out), arena).ok());
      std::vector<std::string> wanted;
      for (size_t i = 0; i < kRecords; ++i)
        wanted.emplace_back(reinterpret_cast<const char*>(out[0].row(i)), out[0].row_size(i));
      REQUIRE(truncate(path.c_str(), static_cast<off_t>(left)) == 0);
      for (size_t i = 0; i < kRecords; ++i) {
        const RowStatus row = loader->Load({&refs[i], 1, 1}, files, absl::MakeSpan(out), arena);
        CAPTURE(offsets[i]);
        CHECK(row.ok() == (offsets[i] + kRecord <= left));
        if (!row.ok()) CHECK(absl::StrContains(row.status.message(), "became shorter"));
        if (row.ok())
          CHECK((std::string(reinterpret_cast<const char*>(out[0].row(0)), out[0].row_size(0)) ==
                 wanted[i]));
      }
    }
  }
}

}  // namespace
}  // namespace penstock
