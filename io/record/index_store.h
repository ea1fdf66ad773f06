// Where indices of data files are kept: in places, of which each data file has some. What the name
// of a place means only its store knows, so that nothing else assumes a folder.
//
// One rule gives the name beside the data, for folders as for the keys of an object store: a dot in
// front of the data's own name and kIndexSuffix behind it, "data/part-7" and
// "data/.part-7.penstock-index". Globs such as "part-*" pass over it, and so do readers that leave
// out what begins with a dot.
//
// Threads:  safe from any thread.
// Cost:     that of the system calls; Write() waits for the disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/disk.h"
#include "base/file.h"

namespace penstock {

class IndexStore {
 public:
  virtual ~IndexStore() = default;
  // Where the index of a data file may be, and where it may be put: those that come first are tried
  // first.
  virtual std::vector<std::string> PlacesToRead(const std::string& data_path) const = 0;
  virtual std::vector<std::string> PlacesToWrite(const std::string& data_path) const = 0;
  // NotFound where there is none.
  virtual absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& place) = 0;
  // Has `write` fill a file that takes the place whole, durable, once it is written. Unavailable
  // while somebody else writes one there.
  using Writing = absl::FunctionRef<absl::Status(WrittenFile& file)>;
  virtual absl::Status Write(const std::string& place, Writing write) = 0;
};

// Nowhere: each index is built when it is asked for.
class NoIndexStore final : public IndexStore {
 public:
  std::vector<std::string> PlacesToRead(const std::string&) const override { return {}; }
  std::vector<std::string> PlacesToWrite(const std::string&) const override { return {}; }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& place) override {
    return absl::NotFoundError(place);
  }
  absl::Status Write(const std::string& place, Writing) override {
    return absl::PermissionDeniedError(place);
  }
};

// Beside the data, read as the data are and written where their disk allows it; else in a folder of
// this process' own, under a name made of the data file's absolute path. What older releases wrote
// beside the data, without the dot, is read as well.
class FolderIndexStore final : public IndexStore {
 public:
  // `files` must outlive this. `own_folder`: made when it is needed; empty: none.
  FolderIndexStore(FileSystem& files, std::string own_folder);
  std::vector<std::string> PlacesToRead(const std::string& data_path) const override;
  std::vector<std::string> PlacesToWrite(const std::string& data_path) const override;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& place) override;
  absl::Status Write(const std::string& place, Writing write) override;

 private:
  bool IsOwn(const std::string& place) const;

  FileSystem& files_;
  const std::string own_folder_;
};

std::string IndexPathBeside(const std::string& data_path);
std::string IndexPathOfOldBeside(const std::string& data_path);
std::string IndexPathIn(const std::string& own_folder, const std::string& data_path);

}  // namespace penstock
