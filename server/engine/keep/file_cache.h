// What a pipeline keeps of one stage in files (io/element/element_file.h): where, under which
// names, and how much. There is one, and where it ran out of room and went on later, others that go
// on behind each other, called by the number of their first element.
//
// Threads:  constant after construction but for the key, which is computed once; safe from any
//           thread.
// Owns:     nothing open.
// Cost:     the first question for a key reads 8 KiB of each file before the stage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/patient_once.h"
#include "io/element/element_file.h"
#include "io/element/element_file_writer.h"
#include "server/engine/plan/plan_builder.h"

namespace penstock {

class FileCache {
 public:
  // Of the elements that reach the stage which is being planned. `bytes_max`: of the file. With
  // `name`, the file has that name whatever its elements are made of. `compressed`, `sharded`: as
  // ElementSchema.
  static absl::StatusOr<std::shared_ptr<const FileCache>> Create(const std::string& folder,
                                                                 const std::string& name,
                                                                 uint64_t bytes_max,
                                                                 bool compressed, bool sharded,
                                                                 PlanBuilder& plan);

  // The file whose first element has this number, if there is one and it is sound; one that is not
  // is removed. NotFound when there is none, FailedPrecondition when the one that was there was
  // made of files of other versions.
  absl::StatusOr<std::shared_ptr<const ElementFile>> Open(uint64_t first) const;
  // Unavailable while another one writes it, ResourceExhausted where there is no room.
  // `earlier_bytes`: of the files before it.
  absl::StatusOr<std::unique_ptr<ElementFileWriter>> Write(uint64_t first,
                                                           uint64_t earlier_bytes) const;
  // Takes away what would go on behind the file that is written: it has been left by files that are
  // there no more. REQUIRES: that writer's lock, and that there is no file of that number.
  void RemoveBehind(uint64_t first) const;
  // Takes a file away that turned out to be damaged, unless another one has taken its place.
  void Remove(const ElementFile& file) const;

  // How many bytes a file may have that has so many already and goes on behind others of
  // `earlier_bytes`. Where there are such, the disk has been full before, and what it has left is a
  // limit too.
  uint64_t Room(uint64_t earlier_bytes, uint64_t own_bytes) const;

  const std::string& folder() const { return folder_; }
  // The first file of the sources before the stage: elements are kept with their records' files
  // counted from there.
  uint32_t first_file() const { return first_file_; }
  // Whether a file that is there already is taken, and not only written.
  bool reads() const { return name_.empty(); }
  // Whether the first feature of an element is the number of its shard.
  bool sharded() const { return schema_.sharded; }
  // Whether writing waits for another machine.
  bool is_far() const { return is_far_; }

 private:
  FileCache(Disk& disk, FileSystem& files) : disk_(disk), files_(files) {}
  // A file's name is made of the stages and of what tells their data apart wherever they lie, and
  // what stands in it also of the versions of their files here (base/file.h). So what has a new
  // version takes the place of what was kept of the one before.
  struct Keys {
    ElementKey name;
    ElementKey content;
  };
  absl::StatusOr<Keys> KeysOf() const;
  absl::StatusOr<Keys> MakeKeys() const;
  // Of the file without its suffix and, if it goes on behind others, its first element's number.
  absl::StatusOr<std::string> Stem() const;
  absl::StatusOr<std::string> Path(uint64_t first) const;

  Disk& disk_;
  FileSystem& files_;
  std::string folder_;
  std::string name_;
  bool is_far_ = false;
  uint64_t bytes_max_ = 0;
  uint32_t first_file_ = 0;
  Manifest manifest_;
  std::string stages_;  // in a form that is the same for the same stages
  ElementSchema schema_;

  mutable PatientOnce once_;
  mutable absl::StatusOr<Keys> keys_ = absl::UnknownError("");  // constant behind once_
};

}  // namespace penstock
