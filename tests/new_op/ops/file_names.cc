#include <cstring>
#include <memory>
#include <utility>

#include "server/engine/order/counted_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/list_files.h"

namespace penstock {
namespace {

// The paths of the references' files.
class NameLoader final : public ColumnLoader {
 public:
  const Signature& output() const override { return output_; }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    auto* paths = arena.AllocateArray<RowBytes>(rows.rows);
    out[0].rows = paths;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const std::string& path = files.manifest()[rows[row].file].path;
      uint8_t* const copy = arena.Allocate(path.size());
      std::memcpy(copy, path.data(), path.size());
      paths[row] = {copy, path.size()};
    }
    return {};
  }

 private:
  const Signature output_ = {{"value", {DType::kString, {}}}};
};

const OpRegistration<v1::FileNames> kFileNames(
    "file_names", {.place = OpPlace::kSource, .files = v1::FileNames::kPatternFieldNumber},
    [](const v1::FileNames& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<Manifest> manifest = ListFiles(options.pattern(), plan);
      if (!manifest.ok()) return manifest.status();
      for (FileEntry& entry : *manifest) entry.is_one_element = true;
      const FileRange files = plan.AddFiles(*std::move(manifest));
      CountedElements names;
      names.count = files.count;
      names.first_file = files.first;
      names.file_step = 1;
      plan.SetSource(std::make_unique<NameLoader>(), files, CountedOrder(names));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
