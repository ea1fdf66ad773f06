#include "client/ctl/fetch.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/file_error.h"
#include "base/readable_bytes.h"
#include "client/ctl/byte_rate.h"
#include "client/ctl/named_files.h"
#include "client/ctl/progress_bar.h"
#include "client/ctl/stop_at_signal.h"
#include "io/remote/fetch_to_disk.h"

namespace penstock::ctl {
namespace {

using Number = unsigned long long;

struct FetchOptions {
  std::vector<std::string> files;
  std::string cache_dir;
  uint64_t cache_bytes = 0;
};

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "penstock fetch: %s\n", std::string(status.message()).c_str());
  return 1;
}

// A file's line. False where it is not in the folder now.
bool Tell(const FetchedObject& object) {
  std::printf("%s: %llu bytes", object.path.c_str(), static_cast<Number>(object.bytes));
  if (!object.status.ok()) {
    std::printf(", failed: %s\n", std::string(object.status.message()).c_str());
  } else if (!object.has_tag) {
    std::printf(", not kept: the server gives no strong ETag, which would tell its state\n");
  } else if (object.kept_bytes < object.bytes) {
    std::printf(", %llu of them kept: the folder is full (--cache-bytes, cache_bytes)\n",
                static_cast<Number>(object.kept_bytes));
  } else if (object.fetched_bytes == 0) {
    std::printf(", was there\n");
  } else {
    std::printf(", fetched %llu\n", static_cast<Number>(object.fetched_bytes));
  }
  return object.status.ok() && object.has_tag && object.kept_bytes == object.bytes;
}

int Fetch(const FetchOptions& command) {
  for (const std::string& file : command.files) {
    if (IsAddress(file)) continue;
    std::fprintf(stderr, "penstock fetch: expected addresses (s3://, gs://, http://), found %s\n",
                 file.c_str());
    return 2;
  }
  absl::StatusOr<RemoteOptions> options = NamedFiles::Options();
  if (!options.ok()) return Complain(options.status());
  if (!command.cache_dir.empty()) {
    std::error_code ignored;
    options->cache_folder = std::filesystem::absolute(command.cache_dir, ignored).string();
  }
  options->cache_bytes = command.cache_bytes;
  if (options->cache_folder.empty()) {
    std::fprintf(stderr,
                 "penstock fetch: expected --cache-dir or PENSTOCK_REMOTE_CACHE: the daemon's "
                 "remote { cache_folder }\n");
    return 2;
  }
  const StopAtSignal signals;
  std::unique_ptr<ProgressBar> bar;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto fetched =
      FetchToDisk(command.files, *options, ProcessEnvironment(),
                  [&](uint64_t done, uint64_t by_network, uint64_t total, const std::string& path) {
                    if (bar == nullptr) bar = std::make_unique<ProgressBar>(total);
                    bar->Show(done, ShownRate(done, by_network, total, seconds()) + "  " + path);
                  });
  bar.reset();
  if (!fetched.ok()) return Complain(fetched.status());
  const double took_s = seconds();
  bool all = true;
  uint64_t bytes = 0, by_network = 0;
  for (const FetchedObject& object : *fetched) {
    all = Tell(object) && all;
    bytes += object.bytes;
    by_network += object.fetched_bytes;
  }
  std::printf("%zu files, %s: fetched %s in %.1f s, %s/s\n", fetched->size(),
              ReadableBytes(bytes).c_str(), ReadableBytes(by_network).c_str(), took_s,
              ReadableBytes(
                  took_s > 0 ? static_cast<uint64_t>(static_cast<double>(by_network) / took_s) : 0)
                  .c_str());
  return all ? 0 : 1;
}

}  // namespace

void AddFetch(Command root) {
  auto options = std::make_shared<FetchOptions>();
  Command command = root.AddCommand(
      "fetch", "Fetch objects at addresses into a daemon's cache folder, before they are read");
  command.Add("addresses", &options->files, "Addresses or globs: s3://, gs://, http://").Required();
  command.Add("--cache-dir", &options->cache_dir,
              "The daemon's remote { cache_folder }. Default: $PENSTOCK_REMOTE_CACHE");
  command.Add("--cache-bytes", &options->cache_bytes,
              "What all that is kept there may take; 0: half of what the disk has free");
  command.Runs([options] { return Fetch(*options); });
}

}  // namespace penstock::ctl
