// Records of files: the feature `value`, a string. Small ones lie in cells, long ones are read now.
#pragma once

#include <string>

#include "server/engine/read/column_loader.h"
#include "server/engine/read/read_queue.h"

namespace penstock {

// The bytes of records wherever they lie: in cells, in maps (copied and checked now) or in files (read now). As WorkOp::Run.
RowStatus LoadRecords(RowReferences rows, FileTable& files, Column* out, Arena& arena);

class RecordLoader final : public ColumnLoader {
 public:
  explicit RecordLoader(const ReadFormat& format) : content_key_(ContentKeyOf(format)) {}

  // As ColumnLoader::ContentKey(), of records that are read so.
  static std::string ContentKeyOf(const ReadFormat& format);

  const Signature& output() const override { return output_; }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override;
  std::string ContentKey() const override { return content_key_; }

 private:
  const std::string content_key_;
  const Signature output_ = {{"value", {DType::kString, {}}}};
};

}  // namespace penstock
