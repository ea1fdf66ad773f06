#include "client/ctl/data/write.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "io/record/example_builder.h"
#include "io/record/tfrecord_writer.h"
#include "tests/support/catch.h"

namespace penstock::ctl {
namespace {

// A folder for one test case.
class Folder {
 public:
  Folder() {
    path_ = std::filesystem::temp_directory_path() / "penstock-ctl-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

  std::string Get(const std::string& name) const {
    std::ifstream file(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

// The bytes of a file with these records.
class Expected {
 public:
  ExampleBuilder& Next() {
    Flush();
    pending_ = true;
    return example_;
  }
  std::string Bytes() {
    Flush();
    REQUIRE(writer_->Close().ok());
    return folder_.Get("expected");
  }

 private:
  void Flush() {
    if (pending_) REQUIRE(writer_->Write(example_.Serialize()).ok());
    example_.Clear();
    pending_ = false;
  }
  Folder folder_;
  std::unique_ptr<TfrecordWriter> writer_ = *TfrecordWriter::Create(folder_ / "expected");
  ExampleBuilder example_;
  bool pending_ = false;
};

TEST_CASE("JSON lines become Examples") {
  Folder folder;
  const std::string lines =
      folder.Put("in.jsonl",
                 "{\"x\": [1, 2.5], \"n\": -3, \"text\": \"h\\u00e9\", \"flag\": true}\n\n"
                 "{\"x\": 4, \"n\": [], \"text\": [\"a\", \"b\"]}");
  auto records = WriteJsonLines({folder / "out", lines});
  REQUIRE(records.ok());
  CHECK(*records == 2);
  Expected expected;
  ExampleBuilder& first = expected.Next();
  first.AddInt64("flag", 1);
  first.AddInt64("n", -3);
  first.AddBytes("text", "h\xc3\xa9");
  first.AddFloat("x", {1.f, 2.5f});
  ExampleBuilder& second = expected.Next();
  second.AddInt64("n", absl::Span<const int64_t>());
  second.AddBytesList("text", {"a", "b"});
  second.AddFloat("x", {4.f});  // an integer here, but line 1 has a fraction
  CHECK(folder.Get("out") == expected.Bytes());
}

TEST_CASE("What is not finite is written as Python's json writes it") {
  Folder folder;
  // Texts hold such words, and numbers stand before and behind.
  const std::string lines = folder.Put("in.jsonl",
                                       "{\"x\": [1, NaN, -Infinity,Infinity, 2e0, -3]}\n"
                                       "{\"NaN\": \"-Infinity\", \"x\": NaN , \"text\": [\"\\\\\", "
                                       "\"a \\\"NaN\"], \"y\":-Infinity}");
  auto records = WriteJsonLines({folder / "out", lines});
  REQUIRE(records.ok());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  Expected expected;
  expected.Next().AddFloat("x", {1.f, kNaN, -kInfinity, kInfinity, 2.f, -3.f});
  ExampleBuilder& second = expected.Next();
  second.AddBytes("NaN", "-Infinity");
  second.AddBytesList("text", {"\\", "a \"NaN"});
  second.AddFloat("x", {kNaN});
  second.AddFloat("y", {-kInfinity});
  CHECK(folder.Get("out") == expected.Bytes());
}

TEST_CASE("Fields of objects in objects have both names, and only those asked for are written") {
  Folder folder;
  const std::string lines =
      folder.Put("in.jsonl",
                 "{\"id\": 1, \"user\": {\"name\": \"a\", \"at\": {\"x\": 2}}, \"other\": null}\n"
                 "{\"id\": 2, \"user\": {\"at\": {}}, \"other\": [[]]}\n");
  auto records = WriteJsonLines(
      {.out = folder / "out", .path = lines, .fields = {"user.at.x", "id", "user.name"}});
  REQUIRE(records.status().message() == "");
  CHECK(*records == 2);
  Expected expected;
  ExampleBuilder& first = expected.Next();
  first.AddInt64("id", 1);
  first.AddInt64("user.at.x", 2);
  first.AddBytes("user.name", "a");
  expected.Next().AddInt64("id", 2);
  CHECK(folder.Get("out") == expected.Bytes());

  auto unknown = WriteJsonLines({.out = folder / "no", .path = lines, .fields = {"id", "user"}});
  CHECK(unknown.status().message() ==
        absl::StrCat("no line has the field \"user\" of --fields (", lines, ")"));
  CHECK_FALSE(std::filesystem::exists(folder / "no"));
  std::string deep;
  for (int i = 0; i < 65; ++i) deep += "{\"x\": ";
  const std::string too_deep = folder.Put("deep.jsonl", deep + "1" + std::string(65, '}'));
  CHECK(WriteJsonLines({.out = folder / "no", .path = too_deep}).status().message() ==
        absl::StrCat("objects nest more than 64 deep (", too_deep, ", line 1)"));
}

TEST_CASE("Shards hold consecutive records, and as many each as there are") {
  Folder folder;
  std::string text;
  for (int n = 0; n < 11; ++n) absl::StrAppend(&text, "{\"n\": ", n, "}\n\n");
  const std::string lines = folder.Put("in.jsonl", text);
  auto records = WriteJsonLines({.out = folder / "rows.tfrecord", .path = lines, .num_shards = 3});
  REQUIRE(records.status().message() == "");
  CHECK(*records == 11);
  const int begins[] = {0, 4, 8, 11};
  for (int shard = 0; shard < 3; ++shard) {
    Expected expected;
    for (int n = begins[shard]; n < begins[shard + 1]; ++n) expected.Next().AddInt64("n", n);
    CHECK(folder.Get(absl::StrCat("rows-0000", shard, "-of-00003.tfrecord")) == expected.Bytes());
  }
  CHECK_FALSE(std::filesystem::exists(folder / "rows.tfrecord"));
}

TEST_CASE("A bad JSON line is named") {
  struct Case {
    const char* lines;
    const char* message;
  };
  const Case cases[] = {
      {"{\"x\": 1}\n{\"x\": ", "not JSON at column 7 (PATH, line 2)"},
      {"[1, 2]", "expected a JSON object, such as {\"x\": [1, 2], \"y\": 3} (PATH, line 1)"},
      {"{\"x\": 1}\n\n{\"x\": \"one\"}",
       "expected an integer as on line 1, found \"one\" (PATH, line 3, field \"x\")"},
      {"{\"x\": [1, [2]]}",
       "a list in a list: write one flat list, and give its shape in parse_example (PATH, line 1, "
       "field \"x\")"},
      {"{\"x\": {\"y\": [{\"z\": 1}]}}",
       "a list of objects has no counterpart in an Example: read the lines as they are "
       "(json_lines) (PATH, line 1, field \"x.y\")"},
      {"{\"a\": {\"b\": 1}, \"a.b\": 2}",
       "two values are called \"a.b\": a key has a dot where objects are joined by one (PATH, line "
       "1)"},
      {"{\"x\": null}",
       "null has no counterpart in an Example: leave the field out (PATH, line 1, field \"x\")"},
      {"{\"x\": 9223372036854775808}",
       "integer beyond int64: 9223372036854775808 (PATH, line 1, field \"x\")"},
      {"{\"x\": 1e300}", "number beyond float32: 1e+300 (PATH, line 1, field \"x\")"},
      {"{\"x\": 1}\n{\"x\": -1e400}", "number beyond float64 (PATH, line 2)"},
      {"{\"x\": 1NaN}", "not JSON at column 8 (PATH, line 1)"},
      {"{\"x\": NaN5}", "not JSON at column 7 (PATH, line 1)"},
      {"{\"x\": [Infinity, nan]}", "not JSON at column 19 (PATH, line 1)"},
      {"{\"x\": --Infinity}", "not JSON at column 8 (PATH, line 1)"},
      {"{\"x\": Infinity, \"y\": 18446744073709551616}",
       "integer beyond int64: 18446744073709551616 (PATH, line 1)"},
  };
  for (const Case& c : cases) {
    Folder folder;
    const std::string path = folder.Put("in.jsonl", c.lines);
    auto records = WriteJsonLines({folder / "out", path});
    REQUIRE_FALSE(records.ok());
    std::string expected = c.message;
    expected.replace(expected.find("PATH"), 4, path);
    CHECK(records.status().message() == expected);
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
  }
}

TEST_CASE("JSON lines of what cannot be read twice are refused, and not half read") {
  Folder folder;
  std::filesystem::create_directory(folder / "folder");
  int pipe_fds[2];
  REQUIRE(pipe(pipe_fds) == 0);
  REQUIRE(write(pipe_fds[1], "{\"x\": 1}\n", 9) == 9);
  close(pipe_fds[1]);
  for (const std::string& path : {folder / "folder", absl::StrCat("/dev/fd/", pipe_fds[0])}) {
    INFO(path);
    const auto records = WriteJsonLines({folder / "out", path});
    CHECK(records.status().message() ==
          absl::StrCat("expected a regular file, which is read twice: ", path));
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
  }
  close(pipe_fds[0]);
}

TEST_CASE("Files become Examples in the order of their names") {
  Folder folder;
  folder.Put("b.bin", std::string("\x00\x01", 2));
  folder.Put("a.bin", "");
  auto records = WriteFiles(folder / "out", {folder / "*.bin", folder / "b.bin"});
  REQUIRE(records.ok());
  CHECK(*records == 2);
  Expected expected;
  ExampleBuilder& first = expected.Next();
  first.AddBytes("name", folder / "a.bin");
  first.AddBytes("data", "");
  ExampleBuilder& second = expected.Next();
  second.AddBytes("name", folder / "b.bin");
  second.AddBytes("data", std::string_view("\x00\x01", 2));
  CHECK(folder.Get("out") == expected.Bytes());
}

TEST_CASE("A pattern without match is named") {
  Folder folder;
  auto records = WriteFiles(folder / "out", {folder / "*.bin"});
  REQUIRE_FALSE(records.ok());
  CHECK(records.status().code() == absl::StatusCode::kNotFound);
  CHECK(records.status().message() == "no file matches \"" + (folder / "*.bin") + "\"");
}

TEST_CASE("A folder is told from a pattern without match") {
  Folder folder;
  std::filesystem::create_directory(folder / "in");
  for (const char* end : {"", "/"}) {
    auto records = WriteFiles(folder / "out", {folder / "in" + end});
    CHECK(records.status().code() == absl::StatusCode::kNotFound);
    CHECK(records.status().message() == "\"" + (folder / "in") + end + "\" is a folder: \"" +
                                            (folder / "in") + "/*\" names the files in it");
  }
}

}  // namespace
}  // namespace penstock::ctl
