// Records of files: the feature `value`, a string, and `path` where it is asked for. Small ones lie
// in cells, long ones are read now.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/engine/read/column_loader.h"
#include "server/engine/read/read_queue.h"

namespace penstock {

// The bytes of records wherever they lie: in cells, in maps (copied and checked now) or in files
// (read now). As WorkOp::Run. `access`: of their format; null where all lie in cells.
RowStatus LoadRecords(RowReferences rows, FileTable& files, const RecordAccess* access, Column* out,
                      Arena& arena);

// The signature of a source of records.
Signature RecordSignature(bool gives_path);
// The paths of the records' files. They are the manifest's.
void LoadPaths(RowReferences rows, const FileTable& files, Column* out, Arena& arena);

class RecordLoader final : public ColumnLoader {
 public:
  // `files`: the source's. `are_located`: what its order reads as the plan is complete
  // (FileRecordsOptions); it becomes true by Locate().
  RecordLoader(const ReadFormat& format, FileRange files, std::shared_ptr<bool> are_located)
      : format_(format.stream.format),
        can_be_located_(format_ == TfrecordFormat() && format.compression == Compression::kNone &&
                        format.stream.on_damage == OnDamage::kFail),
        are_located_(std::move(are_located)),
        files_(files),
        access_(format.access()),
        output_(RecordSignature(format.gives_path)),
        // Where a file's path is a feature, the same file by another path is another one.
        content_key_(format.gives_path ? ""
                                       : ContentKeyOf(format.compression, *format.stream.format)) {}

  // Most records are others' to compute: small ones, too, are only located where that can be
  // (io/record/located_tfrecords.h). What is left out for its damage is for all to find. While the
  // plan is made.
  void Locate() { *are_located_ = can_be_located_; }

  // As ColumnLoader::ContentKey(), of records that are read so.
  static std::string ContentKeyOf(Compression compression, const RecordFormat& format);

  const Signature& output() const override { return output_; }
  bool resolves() const override { return *are_located_; }
  // Gives small records that are only located their place in a map.
  void Resolve(RecordRef* refs, uint32_t rows, uint32_t stride, FileTable& files,
               Arena& arena) const override;
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override;
  // A record lies where its reference says.
  uint64_t Path(const RecordRef& reference) const override {
    return PathAt(reference, reference.epoch);
  }
  std::string ContentKey() const override { return content_key_; }

 private:
  const std::shared_ptr<const RecordFormat> format_;
  const bool can_be_located_;
  const std::shared_ptr<bool> are_located_;
  const FileRange files_;
  const RecordAccess* const access_;  // the format's
  const Signature output_;
  const std::string content_key_;
};

}  // namespace penstock
