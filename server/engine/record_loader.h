// Records of files: the feature `value`, a string. Small ones lie in cells, long ones are read now.
#pragma once

#include "server/engine/loader.h"

namespace penstock {

// The bytes of records wherever they lie: in cells, in maps (copied and checked now) or in files (read now). As WorkOp::Run.
RowStatus LoadRecords(RowReferences rows, FileTable& files, Column* out, Arena& arena);

class RecordLoader final : public Loader {
 public:
  const Signature& output() const override { return output_; }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override;

 private:
  const Signature output_ = {{"value", {DType::kString, {}}}};
};

}  // namespace penstock
