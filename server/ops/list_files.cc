#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "server/engine/order/counted_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/spec/drawn_seed.h"
#include "server/engine/stage/list_files.h"

namespace penstock {
namespace {

// The paths of the references' files: the feature `value`, a string.
class PathLoader final : public ColumnLoader {
 public:
  const Signature& output() const override { return output_; }
  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    auto* paths = arena.AllocateArray<RowBytes>(rows.rows);
    out[0].rows = paths;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const std::string& path = files.manifest()[rows[row].file].path;
      // A copy, behind which there is room for whole vectors.
      uint8_t* const copy = arena.Allocate(path.size());
      std::memcpy(copy, path.data(), path.size());
      paths[row] = {copy, path.size()};
    }
    return {};
  }

 private:
  const Signature output_ = {{"value", {DType::kString, {}}}};
};

const OpRegistration<v1::ListFiles> kListFiles(
    "list_files",
    {.place = OpPlace::kSource,
     .seed = v1::ListFiles::kSeedFieldNumber,
     .files = v1::ListFiles::kFilesFieldNumber},
    [](const v1::ListFiles& options, PlanBuilder& plan) -> absl::Status {
      const bool shuffled = !options.has_shuffle() || options.shuffle();
      if (!shuffled && (options.has_seed() || options.has_reshuffle_each_iteration())) {
        return absl::InvalidArgumentError(
            "seed, reshuffle_each_iteration: mean something for shuffled files only; found "
            "shuffle: "
            "false");
      }
      if (shuffled && options.keep_order()) {
        return absl::InvalidArgumentError(
            "keep_order: the files of a list are shuffled or keep their order; write shuffle: "
            "false");
      }
      absl::StatusOr<Manifest> manifest = ListFiles(
          options.files(), plan, options.keep_order() ? FileOrder::kOfList : FileOrder::kByPath);
      if (!manifest.ok()) return manifest.status();
      for (FileEntry& entry : *manifest) {
        entry.is_one_element = true;
        // The element is the path: of a whole file that is a stream nobody asks for any byte
        // (engine/compute/far_records.cc). Where stages read records of these files, they say how
        // (PlanFiles::SetRecordFiles).
        entry.is_stream = true;
      }
      const FileRange files = plan.AddFiles(*std::move(manifest));
      std::optional<CountedShuffle> shuffle;
      if (shuffled) {
        v1::ListFiles& resolved = *plan.stage_spec().mutable_list_files();
        if (!resolved.has_seed()) resolved.set_seed(DrawSeed());
        shuffle.emplace();
        shuffle->key = plan.DrawKey(resolved.seed());
        shuffle->reshuffle =
            !options.has_reshuffle_each_iteration() || options.reshuffle_each_iteration();
      }
      CountedElements paths;
      paths.count = files.count;
      paths.first_file = files.first;
      paths.file_step = 1;
      plan.SetSource(std::make_unique<PathLoader>(), files, CountedOrder(paths, shuffle));
      plan.SetPaths(files);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
