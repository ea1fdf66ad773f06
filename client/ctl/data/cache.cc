#include "client/ctl/data/cache.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/disk.h"
#include "io/element/element_file.h"

namespace penstock::ctl {
namespace {

using Number = unsigned long long;

constexpr char kPartialSuffix[] = ".penstock-elements.partial";

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "penstock cache: %s\n", status.ToString().c_str());
  return 1;
}

// The files of a folder that caches have put there.
absl::StatusOr<std::vector<FolderEntry>> FilesOf(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error) && !error)
    return absl::NotFoundError(absl::StrCat("no such folder: ", folder));
  absl::StatusOr<std::vector<FolderEntry>> entries = LocalDisk().List(folder);
  if (!entries.ok()) return entries;
  std::erase_if(*entries, [](const FolderEntry& entry) {
    return !absl::EndsWith(entry.name, kElementFileSuffix) &&
           !absl::EndsWith(entry.name, kPartialSuffix);
  });
  return entries;
}

int List(const std::string& folder) {
  const auto entries = FilesOf(folder);
  if (!entries.ok()) return Complain(entries.status());
  int code = 0;
  for (const FolderEntry& entry : *entries) {
    std::printf("%s  %llu bytes  ", entry.name.c_str(), static_cast<Number>(entry.bytes));
    if (absl::EndsWith(entry.name, kPartialSuffix)) {
      std::printf("is being written, or was given up\n");
      continue;
    }
    const auto file = ElementFile::Map(absl::StrCat(folder, "/", entry.name));
    if (!file.ok()) {
      std::printf("%s\n", std::string(file.status().message()).c_str());
      code = 1;
      continue;
    }
    const uint64_t first = (*file)->first();
    if (first == 0) {
      std::printf("%s%llu elements", (*file)->whole() ? "" : "the first ",
                  static_cast<Number>((*file)->size()));
    } else {
      std::printf("%llu more behind the first %llu%s", static_cast<Number>((*file)->size()),
                  static_cast<Number>(first), (*file)->whole() ? ", to the last" : "");
    }
    std::printf("  %s\n", SignatureToString((*file)->schema().signature).c_str());
  }
  return code;
}

int Verify(const std::string& folder) {
  const auto entries = FilesOf(folder);
  if (!entries.ok()) return Complain(entries.status());
  uint64_t elements = 0, files = 0, damages = 0;
  for (const FolderEntry& entry : *entries) {
    if (absl::EndsWith(entry.name, kPartialSuffix)) continue;
    ++files;
    const auto file = ElementFile::Map(absl::StrCat(folder, "/", entry.name));
    if (!file.ok()) {
      std::printf("%s: %s\n", entry.name.c_str(), std::string(file.status().message()).c_str());
      ++damages;
      continue;
    }
    for (uint64_t i = 0; i < (*file)->size(); ++i) {
      const ElementFile::Element element = (*file)->element(i);
      const uint8_t* const data = (*file)->data() + element.at;
      ++elements;
      if (ElementHolds(data - kElementFrameBytes, data, element.length)) continue;
      ++damages;
      std::printf("%s: element %llu, offset %llu: its checksum does not hold\n", entry.name.c_str(),
                  static_cast<Number>(i), static_cast<Number>(element.at));
    }
  }
  std::printf("verified %llu elements of %llu files: ", static_cast<Number>(elements),
              static_cast<Number>(files));
  if (damages == 0) {
    std::printf("all is well\n");
    return 0;
  }
  std::printf("%llu damaged places; the next pipeline that needs such a file writes it anew\n",
              static_cast<Number>(damages));
  return 1;
}

int Clear(const std::string& folder) {
  const auto entries = FilesOf(folder);
  if (!entries.ok()) return Complain(entries.status());
  int code = 0;
  uint64_t bytes = 0, files = 0;
  for (const FolderEntry& entry : *entries) {
    const std::string path = absl::StrCat(folder, "/", entry.name);
    // A file that somebody writes is left to him: to take his lock is to know that there is nobody.
    std::unique_ptr<WrittenFile> lock;
    if (absl::EndsWith(entry.name, kPartialSuffix)) {
      auto locked = LocalDisk().Create(path);
      if (absl::IsUnavailable(locked.status())) continue;
      if (locked.ok()) lock = *std::move(locked);
    }
    if (const absl::Status status = LocalDisk().Remove(path); !status.ok()) {
      code = Complain(status);
      continue;
    }
    ++files;
    bytes += entry.bytes;
  }
  std::printf("removed %llu files, %llu bytes\n", static_cast<Number>(files),
              static_cast<Number>(bytes));
  return code;
}

}  // namespace

void AddCache(Command root) {
  struct Action {
    const char* name;
    const char* what;
    int (*run)(const std::string& folder);
  };
  Command command = root.AddCommand(
      "cache", "Look at the files in which caches, snapshots and save keep elements");
  for (const Action& action :
       {Action{"list", "One line for each file: its size, its elements and their types", List},
        Action{"verify", "Check every checksum and list the damage", Verify},
        Action{"clear", "Remove them; who reads one goes on with it", Clear}}) {
    auto folder = std::make_shared<std::string>();
    Command inner = command.AddCommand(action.name, action.what);
    inner.Add("folder", folder.get(), "What the spec calls filename or path").Required();
    inner.Runs([folder, run = action.run] { return run(*folder); });
  }
}

}  // namespace penstock::ctl
