// Records of files: the feature `value`, a string. Small ones lie in cells, long ones are read now.
#pragma once

#include "server/engine/loader.h"

namespace penstock {

class RecordLoader final : public Loader {
 public:
  const Signature& output() const override { return output_; }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override;

 private:
  const Signature output_ = {{"value", {DType::kString, {}}}};
};

}  // namespace penstock
