#include "client/ctl/index.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cache_folder.h"
#include "base/file_error.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/named_files.h"
#include "client/ctl/progress_bar.h"
#include "client/ctl/spec_arguments.h"
#include "client/ctl/stop_at_signal.h"
#include "io/record/named_access.h"
#include "io/record/record_index.h"
#include "io/record/tfrecord_access.h"
#include "io/remote/object_index_store.h"
#include "io/remote/remote_client.h"

namespace penstock::ctl {
namespace {

struct IndexCommandOptions {
  std::vector<std::string> files;
  std::string cache_dir;
  std::string format = TfrecordAccess().IndexKey();
  bool verify = false;
  bool skip_damage = false;
  bool upload = false;
  std::string tokens;  // a spec's path
  int workers = 0;
};

// Prints a file's line. False when it has no index now.
bool IndexFile(NamedFiles& files, const ListedFile& listed, const RecordAccess& access,
               IndexStore& store, const IndexOptions& options, ProgressBar& progress,
               uint64_t* records) {
  IndexReport report;
  absl::StatusOr<std::shared_ptr<const RecordIndex>> index = absl::UnknownError("not opened");
  if (auto file = files.Open(listed); file.ok()) {
    index = LoadOrBuildIndex(*file, access, store, options, &report);
  } else {
    index = file.status();
  }
  progress.Clear();
  if (!index.ok()) {
    std::fprintf(stderr, "penstock index: %s\n", std::string(index.status().message()).c_str());
    return false;
  }
  *records += (*index)->size();
  if (report.path.empty() && !report.left_to_another) {
    std::fprintf(stderr, "penstock index: %s\n", report.unwritten.c_str());
    return false;
  }
  std::printf("%s: %llu records", listed.path.c_str(),
              static_cast<unsigned long long>((*index)->size()));
  if (!(*index)->damage().empty())
    std::printf(", %zu damaged places left out", (*index)->damage().size());
  if (report.left_to_another) {
    std::printf(", %s\n", report.unwritten.c_str());
  } else {
    std::printf(", %s %s\n", report.built ? "wrote" : "has", report.path.c_str());
  }
  return true;
}

int Index(const IndexCommandOptions& command) {
  if (command.files.empty()) {
    std::fprintf(stderr, "penstock index: expected files, or --tokens SPEC\n");
    return 2;
  }
  if (command.workers != 0) {
    std::fprintf(stderr, "penstock index: --workers: expected it with --tokens, found it alone\n");
    return 2;
  }
  const RecordAccess* const access = AccessNamed(command.format);
  if (access == nullptr) {
    std::fprintf(stderr, "penstock index: --format: expected one of %s, found \"%s\"\n",
                 NamesOfAccesses().c_str(), command.format.c_str());
    return 2;
  }
  // Before there are other threads.
  std::optional<StopAtSignal> signals;
  if (command.upload) signals.emplace();
  std::vector<std::string> others;
  const auto files = NamedFiles::Match(command.files, &others);
  if (!files.ok()) {
    std::fprintf(stderr, "penstock index: %s\n", std::string(files.status().message()).c_str());
    return 1;
  }
  ProgressBar progress((*files)->bytes());
  uint64_t bytes_before = 0;
  uint64_t records = 0;
  bool all = others.empty();
  // Nothing is written beside objects unasked: their indices go where a private daemon of this user looks for them.
  FolderIndexStore near(LocalFileSystem(), command.cache_dir);
  FolderIndexStore far((*files)->system(),
                       command.cache_dir.empty() ? CacheFolder("index") : command.cache_dir);
  std::optional<RemoteClient> client;
  std::optional<ObjectIndexStore> beside;
  if (command.upload) {
    const absl::StatusOr<RemoteOptions> remote = NamedFiles::Options();
    if (!remote.ok()) {
      std::fprintf(stderr, "penstock index: %s\n", std::string(remote.status().message()).c_str());
      return 1;
    }
    client.emplace(*remote, ProcessEnvironment());
    beside.emplace((*files)->system(), *client);
  }
  for (const std::string& path : others)
    std::fprintf(stderr, "penstock index: no regular file: %s\n", path.c_str());
  for (const ListedFile& file : (*files)->files()) {
    const IndexOptions options = {
        .verify = command.verify,
        .on_damage = command.skip_damage ? OnDamage::kSkipRecord : OnDamage::kFail,
        .progress = [&](uint64_t done) { progress.Show(bytes_before + done, file.path); },
    };
    IndexStore* store = &near;
    if (IsAddress(file.path)) store = beside ? static_cast<IndexStore*>(&*beside) : &far;
    if (!IndexFile(**files, file, *access, *store, options, progress, &records)) all = false;
    bytes_before += file.size_bytes;
  }
  std::printf("%llu records in %zu files\n", static_cast<unsigned long long>(records),
              (*files)->files().size());
  return all ? 0 : 1;
}

// A line for each file whose tokens have been counted.
int IndexTokens(const std::string& socket, const IndexCommandOptions& command) {
  const char* const alone = !command.cache_dir.empty()                      ? "--cache-dir"
                            : command.verify                                ? "--verify"
                            : command.skip_damage                           ? "--skip-damage"
                            : command.format != TfrecordAccess().IndexKey() ? "--format"
                                                                            : nullptr;
  if (alone != nullptr) {
    std::fprintf(stderr, "penstock index: %s: expected it without --tokens, where SPEC decides\n",
                 alone);
    return 2;
  }
  SpecArguments spec;
  spec.path = command.tokens;
  spec.files = command.files;
  const auto source = spec.Read();
  if (!source.ok()) return Report("index", source.status());
  auto daemon = DaemonConnection::OpenOrStart(socket);
  if (!daemon.ok()) return Report("index", daemon.status());
  v1::IndexTokensRequest request;
  *request.mutable_source() = *source;
  request.set_workers(static_cast<uint32_t>(command.workers));
  std::optional<ProgressBar> progress;
  uint64_t files = 0, documents = 0, tokens = 0;
  const absl::Status status =
      daemon->IndexTokens(request, [&](const v1::IndexTokensResponse& answer) {
        if (answer.index_path().empty()) {
          if (!progress) progress.emplace(answer.bytes());
          progress->Show(answer.bytes_done(), answer.path());
          return true;
        }
        progress.reset();
        std::printf("%s: %llu documents, %llu tokens", answer.path().c_str(),
                    static_cast<unsigned long long>(answer.documents()),
                    static_cast<unsigned long long>(answer.tokens()));
        if (answer.left_out() > 0)
          std::printf(", %llu left out", static_cast<unsigned long long>(answer.left_out()));
        std::printf(", %s %s\n", answer.was_there() ? "has" : "wrote", answer.index_path().c_str());
        ++files;
        documents += answer.documents();
        tokens += answer.tokens();
        return true;
      });
  progress.reset();
  if (!status.ok()) return Report("index", status);
  std::printf("%llu documents and %llu tokens in %llu files\n",
              static_cast<unsigned long long>(documents), static_cast<unsigned long long>(tokens),
              static_cast<unsigned long long>(files));
  return 0;
}

}  // namespace

void AddIndex(Command root, const std::string& socket) {
  auto options = std::make_shared<IndexCommandOptions>();
  Command command = root.AddCommand(
      "index", "Build the indices of files of records: .FILE.penstock-index, beside each");
  command.Add("files", &options->files,
              "Paths, addresses or globs; with --tokens, instead of those in SPEC");
  command.Add(
      "--tokens", &options->tokens,
      "Instead of records, count the tokens of each document that the `pack` of SPEC packs");
  const Option cache_dir = command.Add(
      "--cache-dir", &options->cache_dir,
      "Folder for the indices if the data's folder cannot be written, or the data lies at "
      "addresses");
  command
      .AddFlag("--upload", &options->upload,
               "Put the index of each object beside it, into its bucket (s3://, gs://)")
      .Excludes(cache_dir);
  command.Add("--format", &options->format,
              "What the records are: " + NamesOfAccesses() + " (" + options->format + ")");
  command.AddFlag("--verify", &options->verify, "Check the data's checksums too, where it has any");
  command.AddFlag("--skip-damage", &options->skip_damage,
                  "Leave damaged records out and list them in the index (implies --verify)");
  command.Add("--workers", &options->workers, "With --tokens: threads (0: one for each processor)")
      .InRange(0, 256);
  command.Runs([&socket, options] {
    return options->tokens.empty() ? Index(*options) : IndexTokens(socket, *options);
  });
}

}  // namespace penstock::ctl
