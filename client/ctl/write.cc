#include "client/ctl/write.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "client/ctl/match_files.h"
#include "client/ctl/named_output.h"
#include "client/ctl/stop_at_signal.h"
#include "io/record/example_builder.h"
#include "io/record/tfrecord_writer.h"

namespace penstock::ctl {
namespace {

struct WriteOptions {
  std::string out;
  std::vector<std::string> files;
  JsonLinesOptions jsonl;
};

int Run(const WriteOptions& options) {
  JsonLinesOptions jsonl = options.jsonl;
  jsonl.out = options.out;
  std::optional<StopAtSignal> signals;
  // What a signal leaves of a file is replaced by the next run; parts in a bucket would stay.
  if (IsAddress(options.out)) signals.emplace();
  const absl::StatusOr<uint64_t> records =
      jsonl.path.empty() ? WriteFiles(options.out, options.files) : WriteJsonLines(jsonl);
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
  command
      .Add("out", &options->out,
           "The TFRecord file to write, or the address of an object (s3://, gs://)")
      .Required();
  std::optional<Option> jsonl;
  command.OneOf([options, &jsonl](Command input) {
    input.Add("--files", &options->files,
              "Paths or globs: each file becomes an Example with `name` and `data`");
    jsonl = input.Add(
        "--jsonl", &options->jsonl.path,
        "A file with one JSON object on each line: each becomes an Example with its fields, those "
        "of an object in it under both names (user.name). All "
        "numbers of a field become float if any line of the file has a point or an exponent in "
        "that field, otherwise int64: write 1.0 if a feature is to be float. NaN, Infinity and "
        "-Infinity are floats, as Python's json writes them");
  });
  command
      .Add("--fields", &options->jsonl.fields,
           "With --jsonl: the fields to write, such as id user.name; by default all")
      .Needs(*jsonl);
  command
      .Add("--shards", &options->jsonl.num_shards,
           "With --jsonl: the number of files, rows-00000-of-00008.tfrecord and so on for "
           "rows.tfrecord, each of consecutive records")
      .InRange(1, 1024)
      .Needs(*jsonl);
  command.Runs([options] { return Run(*options); });
}

absl::StatusOr<uint64_t> WriteFiles(const std::string& out,
                                    const std::vector<std::string>& patterns) {
  auto paths = MatchFiles(patterns);
  if (!paths.ok()) return paths.status();
  const absl::StatusOr<NamedOutput> output = NamedOutput::For(out);
  if (!output.ok()) return output.status();
  auto writer = output->Create(out);
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
