// Records of files: the feature `value`, a string, and `path` where it is asked for. Small ones lie
// in cells, long ones are read now.
#pragma once

#include <memory>
#include <string>

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
  explicit RecordLoader(const ReadFormat& format)
      : format_(format.stream.format),
        access_(format.access()),
        output_(RecordSignature(format.gives_path)),
        // Where a file's path is a feature, the same file by another path is another one.
        content_key_(format.gives_path ? ""
                                       : ContentKeyOf(format.compression, *format.stream.format)) {}

  // As ColumnLoader::ContentKey(), of records that are read so.
  static std::string ContentKeyOf(Compression compression, const RecordFormat& format);

  const Signature& output() const override { return output_; }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override;
  std::string ContentKey() const override { return content_key_; }

 private:
  const std::shared_ptr<const RecordFormat> format_;
  const RecordAccess* const access_;  // the format's
  const Signature output_;
  const std::string content_key_;
};

}  // namespace penstock
