#include "client/ctl/inspect/inspect.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/files/named_files.h"
#include "client/ctl/inspect/survey_texts.h"
#include "client/ctl/terminal/progress_bar.h"
#include "io/record/record_stream.h"

namespace penstock::ctl {
namespace {

struct InspectOptions {
  std::vector<std::string> files;
  std::string compression;  // "": by how the first file begins
  uint64_t records = 1000;  // of each file
  bool all = false;
  bool python = false;
  bool spec = false;
  bool json = false;
};

// A spec of more files than these has a glob instead, where one matches just them.
constexpr size_t kMostPaths = 4;

// A TFRecord begins with its length, whose upper bytes are zeros.
absl::StatusOr<std::string> CompressionOf(RandomAccessFile& file) {
  uint8_t head[8] = {};
  const absl::StatusOr<size_t> read = file.ReadAt(0, absl::MakeSpan(head));
  if (!read.ok()) return read.status();
  if (*read < 8) return "";
  if (head[0] == 0x1f && head[1] == 0x8b) return "GZIP";
  if (head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd) return "ZSTD";
  const bool is_length = head[4] == 0 && head[5] == 0 && head[6] == 0 && head[7] == 0;
  if (head[0] == 0x78 && (head[0] * 256 + head[1]) % 31 == 0 && !is_length) return "ZLIB";
  return "";
}

std::vector<std::string> PathsOf(const NamedFiles& files) {
  std::vector<std::string> paths;
  for (const ListedFile& file : files.files()) paths.push_back(file.path);
  return paths;
}

// The paths themselves; of many of one folder a glob of what their names have in common, if it
// matches nothing else.
std::vector<std::string> PatternsOf(const std::vector<std::string>& paths) {
  if (paths.size() <= kMostPaths) return paths;
  size_t common = paths[0].size();
  size_t tail = paths[0].size();
  for (const std::string& path : paths) {
    const auto [one, other] =
        std::mismatch(paths[0].begin(), paths[0].end(), path.begin(), path.end());
    common = std::min<size_t>(common, one - paths[0].begin());
    const auto [back, front] =
        std::mismatch(paths[0].rbegin(), paths[0].rend(), path.rbegin(), path.rend());
    tail = std::min<size_t>(tail, back - paths[0].rbegin());
  }
  const std::string& first = paths[0];
  tail = std::min(tail, first.size() - common);
  const std::string glob =
      absl::StrCat(first.substr(0, common), "*", first.substr(first.size() - tail));
  const auto matched = NamedFiles::Match({glob}, nullptr);
  return matched.ok() && PathsOf(**matched) == paths ? std::vector<std::string>{glob} : paths;
}

// Looks at the records of a file. `whole`: becomes false where there are more than those.
absl::Status InspectFile(NamedFiles& files, const ListedFile& listed, Compression compression,
                         uint64_t records_max, const std::function<void(uint64_t bytes)>& progress,
                         ExampleSurvey* survey, bool* whole) {
  const std::string& path = listed.path;
  auto file = files.Open(listed);
  if (!file.ok()) return file.status();
  auto stream = RecordStream::Open(*file, compression, {});
  if (!stream.ok()) return stream.status();
  uint64_t records = 0;
  uint64_t bytes = 0;
  RecordChunk chunk;
  do {
    (*stream)->Next(&chunk);
    for (const RecordChunk::Record& record : chunk.records) {
      if (records == records_max) {
        *whole = false;
        return absl::OkStatus();
      }
      const std::string problem = survey->Add(chunk.data(record), record.length);
      if (!problem.empty()) {
        return absl::DataLossError(absl::StrCat(
            "no tf.train.Example: ", problem, " (", path, ", record ", records, ", offset ",
            record.offset, ", ", record.length, " bytes of ",
            ContentOf({reinterpret_cast<const char*>(chunk.data(record)), record.length}), ")"));
      }
      ++records;
    }
    progress(bytes += chunk.bytes_read);
  } while (chunk.error.ok() && !chunk.end_of_file);
  return chunk.error;
}

absl::Status Look(const InspectOptions& options, ExampleSurvey* survey, SurveyedFiles* files) {
  const auto named = NamedFiles::Match(options.files, nullptr);
  if (!named.ok()) return named.status();
  const std::vector<ListedFile>& all = (*named)->files();
  files->patterns = PatternsOf(PathsOf(**named));
  files->files = all.size();
  files->compression = options.compression == "NONE" ? "" : options.compression;
  if (options.compression.empty()) {
    const auto first = (*named)->Open(all.front());
    if (!first.ok()) return first.status();
    absl::StatusOr<std::string> compression = CompressionOf(**first);
    if (!compression.ok()) return compression.status();
    files->compression = *std::move(compression);
  }
  const auto compression = CompressionFromName(files->compression);
  if (!compression.ok()) return compression.status();
  ProgressBar progress((*named)->bytes());
  uint64_t bytes = 0;
  for (const ListedFile& file : all) {
    const absl::Status status = InspectFile(
        **named, file, *compression, options.all ? UINT64_MAX : options.records,
        [&](uint64_t read) { progress.Show(bytes + read, file.path); }, survey, &files->whole);
    if (!status.ok()) {
      progress.Clear();
      return status;
    }
    bytes += file.size_bytes;
  }
  progress.Clear();
  if (survey->records() == 0) return absl::NotFoundError("the files hold no record");
  return absl::OkStatus();
}

int Inspect(const InspectOptions& options) {
  ExampleSurvey survey;
  SurveyedFiles files;
  if (const absl::Status status = Look(options, &survey, &files); !status.ok()) {
    std::fprintf(stderr, "penstock inspect: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  const std::string text = options.json     ? SurveyJson(survey, files)
                           : options.spec   ? SurveySpec(survey, files)
                           : options.python ? SurveyPython(survey, files)
                                            : SurveyTable(survey, files);
  std::fputs(text.c_str(), stdout);
  if (!files.whole)
    std::fprintf(stderr,
                 "penstock inspect: only the first %llu records of each file were looked at; --all "
                 "looks at every one\n",
                 static_cast<unsigned long long>(options.records));
  return 0;
}

}  // namespace

void AddInspect(Command root) {
  auto options = std::make_shared<InspectOptions>();
  Command command = root.AddCommand(
      "inspect", "What TFRecord files hold: features, types, presence, shapes, ranges");
  command.Add("files", &options->files, "Paths, addresses or globs").Required();
  const Option records =
      command.Add("--records", &options->records, "How many of each file").Positive().WithDefault();
  command.AddFlag("--all", &options->all, "Every record of every file").Excludes(records);
  const Option python = command.AddFlag("--python", &options->python,
                                        "A dict of features in Python, and a dataset of them");
  const Option spec =
      command.AddFlag("--spec", &options->spec, "A spec that reads them, for penstock create")
          .Excludes(python);
  command.AddFlag("--json", &options->json, "All of it as JSON").Excludes(python).Excludes(spec);
  command
      .Add("--compression", &options->compression,
           "NONE, GZIP, ZLIB or ZSTD; without it as the first file begins")
      .Checked([](const std::string& name) {
        return std::string(CompressionFromName(name).status().message());
      });
  command.Runs([options] { return Inspect(*options); });
}

}  // namespace penstock::ctl
