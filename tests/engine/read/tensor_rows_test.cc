// How rows lie in columns (base/column.h), strings with axes among them.
#include "server/engine/read/tensor_rows.h"

#include <cstring>

#include "server/engine/read/inline_tensor.h"
#include "tests/support/arrays.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

std::string Sizes(std::initializer_list<uint32_t> sizes) {
  std::string out;
  for (const uint32_t size : sizes) out += Little(size, 4);
  return out;
}

// Rows 2, 0 and 1 as they lie in their column.
std::vector<std::string> Load(const TensorRows& rows, FileTable& files) {
  const RecordRef refs[] = {{nullptr, 2, 0, 0, 0}, {nullptr, 0, 0, 0, 0}, {nullptr, 1, 0, 0, 0}};
  Arena arena;
  Column column;
  const RowStatus status = rows.Load({refs, 3, 1}, files, &column, arena);
  INFO(status.status.ToString());
  REQUIRE(status.ok());
  std::vector<std::string> found;
  for (size_t row = 0; row < 3; ++row)
    found.emplace_back(reinterpret_cast<const char*>(column.row(row)), column.row_size(row));
  return found;
}

TEST_CASE("Rows of strings are their bytes, or all sizes and then all bytes") {
  const Manifest manifest;
  FileTable files(LocalFileSystem(), manifest);
  const RowCut scalars = CutRows({DType::kString, {3}}, true);
  CHECK(Load(*StringRows(scalars, {"a", "", "ccc"}), files) ==
        std::vector<std::string>{"ccc", "a", ""});
  const RowCut pairs = CutRows({DType::kString, {3, 2}}, true);
  CHECK(Load(*StringRows(pairs, {"a", "bb", "", "", "x", "yz"}), files) ==
        std::vector<std::string>{Sizes({1, 2}) + "xyz", Sizes({1, 2}) + "abb", Sizes({0, 0})});
  const RowCut whole = CutRows({DType::kString, {3, 2}}, false);
  CHECK(whole.rows == 1);
  CHECK(whole.row_type.shape == Shape{3, 2});
}

TEST_CASE("Rows of numbers lie one after another") {
  const Manifest manifest;
  FileTable files(LocalFileSystem(), manifest);
  const RowCut cut = CutRows({DType::kInt16, {3, 2}}, true);
  CHECK(Load(*NumberRows(cut, "aabbccddeeff"), files) ==
        std::vector<std::string>{"eeff", "aabb", "ccdd"});
}

TEST_CASE("Rows of text in files are those of strings") {
  ScratchFolder folder;
  const auto load = [&](const std::string& descr, const std::string& shape,
                        const std::string& values) {
    const std::string bytes = NpyHeaderText(descr, shape);
    WriteFile(folder / "x.npy", bytes + values);
    const auto file = LocalFileSystem().Open(folder / "x.npy");
    const Manifest manifest = {{(*file)->path(), (*file)->size(), nullptr, (*file)->version()}};
    FileTable files(LocalFileSystem(), manifest);
    const auto header = ParseNpyHeader(
        absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    REQUIRE(header.ok());
    return Load(*FileRows(CutRows(header->type, true),
                          std::make_unique<FileArray>(0, *header, std::nullopt)),
                files);
  };
  using Strings = std::vector<std::string>;
  CHECK(load("|S3", "(3,)", std::string("ab\0c\0\0\0\0\0", 9)) == Strings{"", "ab", "c"});
  CHECK(load("|S2", "(3, 2)", std::string("ab\0\0c\0d\0\0e\0\0", 12)) ==
        Strings{Sizes({2, 0}) + std::string("\0e", 2), Sizes({2, 0}) + "ab", Sizes({1, 1}) + "cd"});
  CHECK(load("<U2", "(3,)",
             Little(0x1f388, 4) + Little('x', 4) + Little(0xe9, 4) + Little(0, 4) + Little(0, 4) +
                 Little(0x65e5, 4)) ==
        Strings{std::string("\0\xe6\x97\xa5", 4), "\xf0\x9f\x8e\x88x", "\xc3\xa9"});
}

TEST_CASE("Text in files that is no Unicode is an error of its row") {
  ScratchFolder folder;
  for (const uint32_t code : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu}) {
    const std::string bytes = NpyHeaderText("<U1", "(2,)");
    WriteFile(folder / "x.npy", bytes + Little('a', 4) + Little(code, 4));
    const auto file = LocalFileSystem().Open(folder / "x.npy");
    const Manifest manifest = {{(*file)->path(), (*file)->size(), nullptr, (*file)->version()}};
    FileTable files(LocalFileSystem(), manifest);
    const auto header = ParseNpyHeader(
        absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    const auto rows = FileRows(CutRows(header->type, true),
                               std::make_unique<FileArray>(0, *header, std::nullopt));
    const RecordRef refs[] = {{nullptr, 0, 0, 0, 0}, {nullptr, 1, 0, 0, 0}};
    Arena arena;
    Column column;
    const RowStatus status = rows->Load({refs, 2, 1}, files, &column, arena);
    CHECK(status.status.code() == absl::StatusCode::kDataLoss);
    CHECK(status.row == 1);
  }
}

}  // namespace
}  // namespace penstock::test
