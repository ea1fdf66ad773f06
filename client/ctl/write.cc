#include "client/ctl/write.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/match_files.h"
#include "io/record/example_builder.h"
#include "io/record/tfrecord_writer.h"

namespace penstock::ctl {
namespace {

struct WriteOptions {
  std::string out;
  std::vector<std::string> files;
  std::string jsonl;
};

int Run(const WriteOptions& options) {
  const absl::StatusOr<uint64_t> records = options.jsonl.empty()
                                               ? WriteFiles(options.out, options.files)
                                               : WriteJsonLines(options.out, options.jsonl);
  if (!records.ok()) {
    std::fprintf(stderr, "penstock write: %s\n", std::string(records.status().message()).c_str());
    return 1;
  }
  std::printf("wrote %llu records to %s\n", static_cast<unsigned long long>(*records),
              options.out.c_str());
  return 0;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                       &std::fclose);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::string bytes;
  char piece[1 << 16];
  for (size_t n; (n = std::fread(piece, 1, sizeof piece, file.get())) > 0;) bytes.append(piece, n);
  if (std::ferror(file.get()))
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  return bytes;
}

}  // namespace

void AddWrite(Command root) {
  auto options = std::make_shared<WriteOptions>();
  Command command = root.AddCommand("write", "Pack files or JSON lines into a TFRecord file");
  command.Add("out", &options->out, "The TFRecord file to write").Required();
  command.OneOf([options](Command input) {
    input.Add("--files", &options->files,
              "Paths or globs: each file becomes an Example with `name` and `data`");
    input.Add(
        "--jsonl", &options->jsonl,
        "A file with one JSON object on each line: each becomes an Example with its fields. All "
        "numbers of a field become float if any line of the file has a point or an exponent in "
        "that field, otherwise int64: write 1.0 if a feature is to be float. NaN, Infinity and "
        "-Infinity are floats, as Python's json writes them");
  });
  command.Runs([options] { return Run(*options); });
}

absl::StatusOr<uint64_t> WriteFiles(const std::string& out,
                                    const std::vector<std::string>& patterns) {
  auto paths = MatchFiles(patterns);
  if (!paths.ok()) return paths.status();
  auto writer = TfrecordWriter::Create(out);
  if (!writer.ok()) return writer.status();
  ExampleBuilder example;
  for (const std::string& path : *paths) {
    auto data = ReadFile(path);
    if (!data.ok()) return data.status();
    example.Clear();
    example.AddBytes("name", path);
    example.AddBytes("data", *data);
    absl::Status status = (*writer)->Write(example.Serialize());
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat(status.message(), " from ", path));
  }
  if (absl::Status status = (*writer)->Close(); !status.ok()) return status;
  return (*writer)->num_records();
}

}  // namespace penstock::ctl
