// What from_tensors and from_tensor_slices refuse, and what becomes of files that change. Their
// elements: order_golden_test.cc.
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/engine/run/order_walk.h"
#include "tests/support/arrays.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// An .npy file of the numbers from 0 on.
std::string Numbers(int64_t rows) {
  std::string bytes = NpyHeaderText("<i8", absl::StrCat("(", rows, ",)"));
  for (int64_t i = 0; i < rows; ++i) bytes += Little(i, 8);
  return bytes;
}

std::string Place(const std::string& text, const ScratchFolder& folder) {
  return absl::StrReplaceAll(text, {{"FOLDER", folder.path()}});
}

TEST_CASE("tensors: what does not fit is refused with what was expected") {
  ScratchFolder folder;
  WriteFile(folder / "five.npy", Numbers(5));
  WriteFile(folder / "cut.npy", Numbers(5).substr(0, 100));
  WriteFile(folder / "objects.npy", NpyHeaderText("|O", "(5,)") + "pickle");
  WriteFile(folder / "brain.npy", NpyHeaderText("|V2", "(1,)") + "..");
  WriteFile(folder / "two.npz", Zip({{.name = "a.npy", .plain = Numbers(2)},
                                     {.name = "note.txt", .plain = "x"},
                                     {.name = "big.npy", .plain = Numbers(3), .deflated = true}}));
  WriteFile(folder / "none.npz", Zip({{.name = "note.txt", .plain = "x"}}));
  WriteFile(folder / "bad_name.npz", Zip({{.name = "\xff.npy", .plain = Numbers(2)}}));
  const struct {
    std::string inside;
    const char* message;
  } cases[] = {
      {"", "expected either tensors or an npz, found neither"},
      {"tensor { value: 1 } npz: 'FOLDER/two.npz'", "found both"},
      {"tensor {}", "tensor 0: expected values, found none"},
      {"tensor { value: 1 int_value: 2 }", "expected one of value, int_value"},
      {"tensor { value: 1 npy: 'FOLDER/five.npy' }", "expected one of value, int_value"},
      {"tensor { value: 1 array: 'a' }", "expected npz, found none"},
      {"tensor { dtype: 'int33' value: 1 }", "expected a NumPy name or \"string\""},
      {"tensor { shape: -1 value: 1 }", "sizes of at least 0, found -1"},
      {"tensor { shape: 2 shape: 2 value: 1 value: 2 }",
       "expected as many values as (2, 2) has, found 2"},
      {"tensor { shape: 4611686018427387904 shape: 4611686018427387904 value: 1 }",
       "expected as many values as"},
      {"tensor { dtype: 'int8' int_value: 1 int_value: 128 }",
       "value 1: expected one of type int8, found 128"},
      {"tensor { dtype: 'uint8' int_value: -1 }", "value 0: expected one of type uint8, found -1"},
      {"tensor { dtype: 'int32' value: 1.5 }", "value 0: expected one of type int32, found 1.5"},
      {"tensor { dtype: 'int64' value: 9223372036854775808 }", "expected one of type int64"},
      {"tensor { dtype: 'int64' value: nan }", "expected one of type int64"},
      {"tensor { dtype: 'int64' uint_value: 9223372036854775808 }", "expected one of type int64"},
      {"tensor { dtype: 'uint64' value: 18446744073709551616 }", "expected one of type uint64"},
      {"tensor { dtype: 'bool' int_value: 2 }", "expected one of type bool, found 2"},
      {"tensor { dtype: 'string' int_value: 2 }", "expected string_value for dtype string"},
      {"tensor { dtype: 'int8' string_value: 'x' }", "expected value, int_value or uint_value"},
      {"tensor { name: 'x' value: 1 } tensor { value: 1 }",
       "tensor 1: expected a name, found none"},
      {"tensor { name: 'x' value: 1 } tensor { name: 'x' value: 1 }",
       "two tensors are called \"x\""},
      {"tensor { name: 'x' value: 1 value: 2 } tensor { name: 'y' value: 1 value: 2 value: 3 }",
       "tensor \"y\": expected the first axis to be as long as that of tensor \"x\", 2, found 3"},
      {"tensor { name: 'x' int_value: 1 } tensor { name: 'y' npy: 'FOLDER/five.npy' }",
       "as that of tensor \"x\", 1, found 5"},
      {"tensor { shape: 9000000 shape: 0 }", "more rows of no values"},
      {"tensor { npy: 'FOLDER/no.npy' }", "cannot open"},
      {"tensor { npy: 'FOLDER/cut.npy' }", "the file ends inside of the array: 40 bytes"},
      {"tensor { npy: 'FOLDER/two.npz' }", "no .npy file"},
      {"tensor { npy: 'FOLDER/objects.npy' }", "Python objects"},
      {"tensor { npy: 'FOLDER/brain.npy' }", "expected dtype: \"bfloat16\""},
      {"tensor { npy: 'FOLDER/five.npy' dtype: 'float32' }",
       "expected float32 (5,) in the file, found int64 (5,)"},
      {"tensor { npy: 'FOLDER/five.npy' shape: 6 }",
       "expected int64 (6,) in the file, found int64 (5,)"},
      {"npz: 'FOLDER/five.npy'", "no directory at its end"},
      {"npz: 'FOLDER/none.npz'", "has no arrays"},
      {"npz: 'FOLDER/bad_name.npz'", "no name of UTF-8"},
      {"npz: 'FOLDER/two.npz'",
       "tensor \"big\": expected the first axis to be as long as that of tensor \"a\", 2, found 3"},
      {"tensor { npz: 'FOLDER/two.npz' array: 'bigg' }",
       "no array \"bigg\", did you mean \"big\"?"},
      {"tensor { name: 'b' npz: 'FOLDER/two.npz' }", "no array \"b\""},
  };
  for (const auto& c : cases) {
    const auto plan =
        PlanText(Place(absl::StrCat("stage { from_tensor_slices { ", c.inside, " } }"), folder));
    INFO(c.inside << "\n" << plan.status().ToString());
    CHECK_FALSE(plan.ok());
    CHECK(absl::StrContains(plan.status().message(), c.message));
  }
  WriteFile(folder / "scalar.npz",
            Zip({{.name = "x.npy", .plain = NpyHeaderText("|i1", "()") + "\x05"}}));
  CHECK(absl::StrContains(
      PlanText(
          Place("stage { from_tensor_slices { tensor { npz: 'FOLDER/scalar.npz' array: 'x' } } }",
                folder))
          .status()
          .message(),
      "expected an axis to slice along, found a scalar"));
}

TEST_CASE("fault 23: tensors: a file that changes is an error with its place, and no death") {
  ScratchFolder folder;
  const std::string text = Stages(Place(
      "from_tensor_slices { tensor { npy: 'FOLDER/x.npy' } } | batch { batch_size: 100 }", folder));
  const auto after = [&](const auto& change) {
    WriteFile(folder / "x.npy", Numbers(5000));
    const auto plan = PlanText(text);
    REQUIRE(plan.ok());
    change();
    const RunResult result = RunPlan(*plan);
    CHECK(result.batches.empty());
    CHECK(absl::StrContains(result.status.message(), "stage from_tensor_slices: "));
    CHECK(absl::StrContains(result.status.message(), folder / "x.npy"));
    return std::string(result.status.message());
  };
  CHECK(
      absl::StrContains(after([&] { WriteFile(folder / "x.npy", Numbers(4999)); }), "bytes then"));
  CHECK(absl::StrContains(after([&] {
                            WriteFile(folder / "new", Numbers(5000));
                            std::filesystem::rename(folder / "new", folder / "x.npy");
                          }),
                          "written to or replaced"));

  // While it is mapped: rows before the end that is gone have been handed out.
  WriteFile(folder / "x.npy", Numbers(50000));
  const auto plan = PlanText(text);
  REQUIRE(plan.ok());
  REQUIRE(RunPlan(*plan, {.max_steps = 1}).batches.size() == 1);
  std::filesystem::resize_file(folder / "x.npy", 100000);
  const absl::StatusOr<RunResult> cut = TryRunPlan(*plan, {.max_steps = 400});
  REQUIRE_FALSE((cut.ok() && cut->status.ok()));
  const absl::Status status = cut.ok() ? cut->status : cut.status();
  INFO(status.ToString());
  CHECK(absl::StrContains(status.message(), folder / "x.npy"));
}

TEST_CASE(
    "fault 20a: tensors: an array of an .npz file whose checksum is wrong hands nothing out") {
  ScratchFolder folder;
  for (const bool deflated : {false, true}) {
    WriteFile(folder / "x.npz",
              Zip({{.name = "good.npy", .plain = Numbers(90)},
                   {.name = "x.npy", .plain = Numbers(90), .deflated = deflated, .crc_error = 1}}));
    const auto run = [&](const std::string& array) {
      return RunText(
          Stages(Place(absl::StrCat("from_tensor_slices { tensor { npz: 'FOLDER/x.npz' array: '",
                                    array, "' } } | batch { batch_size: 10 }"),
                       folder)));
    };
    CHECK(run("good").batches.size() == 9);
    const RunResult bad = run("x");
    INFO(bad.status.ToString());
    CHECK(bad.batches.empty());
    CHECK(bad.status.code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StrContains(bad.status.message(), "checksum"));
    CHECK(absl::StrContains(bad.status.message(), folder / "x.npz"));
  }
}

TEST_CASE("tensors: rows of an .npz file with ZIP64 fields are read in place") {
  ScratchFolder folder;
  WriteFile(folder / "x.npz",
            Zip({{.name = "a.npy", .plain = Numbers(5), .zip64 = true},
                 {.name = "b.npy", .plain = Numbers(5), .zip64 = true, .extra = "12345"}},
                /*zip64_end=*/true));
  const RunResult result = RunText(Place(
      "stage { from_tensor_slices { npz: 'FOLDER/x.npz' } } stage { batch { batch_size: 5 } }",
      folder));
  REQUIRE(result.batches.size() == 1);
  CHECK(Int64s(result, 0) == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(Int64s(result, 1) == std::vector<int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("tensors: a row is found by its offset, and the offset by its row") {
  ScratchFolder folder;
  WriteFile(folder / "x.npy", Numbers(50));
  const auto plan =
      PlanText(Stages(Place("from_tensor_slices { tensor { name: 'i' npy: 'FOLDER/x.npy' } } | "
                            "shuffle { buffer_size: 50 seed: 1 "
                            "} | batch { batch_size: 7 }",
                            folder)));
  REQUIRE(plan.ok());
  const uint64_t offset = Numbers(0).size() + 1 + 8 * 31;  // "(50,)" has a digit more
  const auto row = FindRow(*plan, "x.npy", offset, 0, 100);
  INFO(row.status().ToString());
  REQUIRE(row.ok());
  const auto places = FindRecords(*plan, row->step, row->row);
  REQUIRE(places.ok());
  CHECK(places->front().offset == offset);
  CHECK(RunPlan(*plan).batches[row->step].As<int64_t>(0)[row->row] == 31);
}

// The same names in another folder are the same data; other names, or another use of the same ones,
// are not.
TEST_CASE("tensors: the cursor belongs to the values and the files") {
  ScratchFolder folder;
  const std::string bytes = Numbers(20);
  std::filesystem::create_directory(folder / "moved");
  for (const char* name : {"a.npy", "b.npy", "moved/a.npy", "moved/b.npy"})
    WriteFile(folder / name, bytes);
  const auto spec = [&](const std::string& x, const std::string& y, const std::string& z,
                        int value) {
    std::string tensors;
    for (const auto& [name, file] : {std::pair("x", x), std::pair("y", y), std::pair("z", z)})
      absl::StrAppend(&tensors, "tensor { name: '", name, "' npy: 'FOLDER/", file, "' } ");
    return Place(absl::StrCat("stage { zip { input { stage { from_tensor_slices { ", tensors,
                              " } } } input { stage { from_tensors { tensor { int_value: ", value,
                              " } } } stage { repeat {} } } } }"),
                 folder);
  };
  const auto cursor =
      RunText(spec("a.npy", "b.npy", "a.npy", 1), {.max_steps = 3}).batches[2].info.cursor;
  const auto status = [&](const std::string& text) {
    return TryRunPlan(*PlanText(text), {.max_steps = 1, .cursor = cursor}).status();
  };
  CHECK(status(spec("a.npy", "b.npy", "a.npy", 1)).ok());
  CHECK(status(spec("moved/a.npy", "moved/b.npy", "moved/a.npy", 1)).ok());
  CHECK(absl::StrContains(status(spec("a.npy", "b.npy", "a.npy", 2)).message(), "options differ"));
  CHECK(absl::StrContains(status(spec("a.npy", "b.npy", "b.npy", 1)).message(), "options differ"));
  CHECK_FALSE(status(spec("b.npy", "a.npy", "b.npy", 1)).ok());
  CHECK_FALSE(status(spec("a.npy", "b.npy", "moved/a.npy", 1)).ok());
}

}  // namespace
}  // namespace penstock::test
