// The .npy and .npz files of one source, while its plan is made: what arrays they hold.
//
// Threads:  one thread.
// Owns:     a handle of each file.
// Cost:     headers and directories are read, values are not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/tensor_source.h"

namespace penstock {

class ArrayFiles {
 public:
  explicit ArrayFiles(FileSystem& files) : files_(files) {}

  // The array of an .npy file.
  absl::StatusOr<TensorSource> ReadNpy(const std::string& path);
  // One of an .npz file.
  absl::StatusOr<TensorSource> ReadNpz(const std::string& path, const std::string& array);
  // The names of all of them, in the file's order.
  absl::StatusOr<std::vector<std::string>> List(const std::string& path);

  // Every file that was named, each once: those that TensorSource::file counts.
  const Manifest& manifest() const { return manifest_; }

 private:
  // The number of a file, which is opened when it is first named.
  absl::StatusOr<uint32_t> Add(const std::string& path);
  absl::StatusOr<const std::vector<ZipMember>*> Members(uint32_t file);
  absl::StatusOr<TensorSource> ReadMember(uint32_t file, const ZipMember& member);
  // `bytes`: of the array's own .npy file, whose beginning is given.
  absl::StatusOr<TensorSource> Read(uint32_t file, absl::Span<const uint8_t> beginning,
                                    uint64_t bytes, std::optional<ZipMember> member) const;

  FileSystem& files_;
  Manifest manifest_;
  // Of each file of it.
  std::vector<std::shared_ptr<RandomAccessFile>> open_;
  std::vector<std::optional<std::vector<ZipMember>>> members_;
};

}  // namespace penstock
