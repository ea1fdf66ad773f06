#include "client/ctl/data/verify.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/ctl/files/named_files.h"
#include "client/ctl/terminal/progress_bar.h"
#include "io/record/record_stream.h"

namespace penstock::ctl {
namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  std::string compression;
};

struct Totals {
  uint64_t records = 0;
  uint64_t bytes = 0;  // of the files
  uint64_t damages = 0;
  uint64_t unreadable = 0;  // files
};

void PrintDamage(const std::string& path, const Damage& damage) {
  std::printf("%s: offset %llu, length ", path.c_str(),
              static_cast<unsigned long long>(damage.offset));
  if (damage.length == kDamageToTheEnd) {
    std::printf("to the end");
  } else {
    std::printf("%llu", static_cast<unsigned long long>(damage.length));
  }
  std::printf(": %s\n", DamageReasonName(damage.reason));
}

absl::Status VerifyFile(NamedFiles& files, const ListedFile& listed, Compression compression,
                        ProgressBar& progress, Totals* totals) {
  const std::string& path = listed.path;
  auto file = files.Open(listed);
  if (!file.ok()) return file.status();
  auto stream = RecordStream::Open(*file, compression, {.on_damage = OnDamage::kSkipRecord});
  if (!stream.ok()) return stream.status();
  RecordChunk chunk;
  do {
    (*stream)->Next(&chunk);
    totals->records += chunk.records.size();
    totals->bytes += chunk.bytes_read;
    totals->damages += chunk.damage.size();
    if (!chunk.damage.empty()) progress.Clear();
    for (const Damage& damage : chunk.damage) PrintDamage(path, damage);
    progress.Show(totals->bytes, path);
  } while (chunk.error.ok() && !chunk.end_of_file);
  return chunk.error;
}

int Verify(const VerifyOptions& options) {
  const auto compression = CompressionFromName(options.compression);
  std::vector<std::string> others;
  const auto files = NamedFiles::Match(options.files, &others);
  for (const absl::Status& status : {compression.status(), files.status()}) {
    if (status.ok()) continue;
    std::fprintf(stderr, "penstock verify: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  ProgressBar progress((*files)->bytes());
  Totals totals;
  for (const std::string& path : others) {
    ++totals.unreadable;
    std::fprintf(stderr, "penstock verify: no regular file: %s\n", path.c_str());
  }
  for (const ListedFile& file : (*files)->files()) {
    const absl::Status status = VerifyFile(**files, file, *compression, progress, &totals);
    if (status.ok()) continue;
    ++totals.unreadable;
    progress.Clear();
    std::fprintf(stderr, "penstock verify: %s\n", std::string(status.message()).c_str());
  }
  progress.Clear();
  std::printf("verified %llu records of %zu files, %llu bytes: ",
              static_cast<unsigned long long>(totals.records), (*files)->files().size(),
              static_cast<unsigned long long>(totals.bytes));
  if (totals.damages == 0 && totals.unreadable == 0) {
    std::printf("all is well\n");
    return 0;
  }
  std::printf("%llu damaged places", static_cast<unsigned long long>(totals.damages));
  if (totals.unreadable > 0) {
    std::printf(", %llu files that cannot be read",
                static_cast<unsigned long long>(totals.unreadable));
  }
  std::printf("\n");
  return 1;
}

}  // namespace

void AddVerify(Command root) {
  auto options = std::make_shared<VerifyOptions>();
  Command command =
      root.AddCommand("verify", "Check every checksum of TFRecord files and list the damage");
  command.Add("files", &options->files, "Paths, addresses or globs").Required();
  command.Add("--compression", &options->compression, "NONE (default), GZIP, ZLIB or ZSTD")
      .Checked([](const std::string& name) {
        return std::string(CompressionFromName(name).status().message());
      });
  command.Runs([options] { return Verify(*options); });
}

}  // namespace penstock::ctl
