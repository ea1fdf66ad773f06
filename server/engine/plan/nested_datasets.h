// Datasets inside of an op: its inputs, and what it makes anew for each element or window of
// another dataset. Here it is known what the stages stand inside of.
//
// Threads:  one thread, while a plan is made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/signature.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/copy_marks.h"
#include "server/engine/plan/growing_dataset.h"
#include "server/engine/plan/section_cuts.h"
#include "server/engine/plan/stage_table.h"
#include "server/engine/plan/stage_walk.h"

namespace penstock {

// The elements of a window, as the stages inside of it find them.
struct WindowElements {
  Signature signature;
  std::string structure;
  const ElementCells* cells = nullptr;
  uint32_t first_file = 0;  // of their source
};

class NestedDatasets {
 public:
  using Inputs = google::protobuf::RepeatedPtrField<v1::Input>;
  using Factory = std::function<OrderFactory(const OrderNode& nested, uint32_t width)>;
  enum class WindowKind {
    kElement,      // each is one element
    kApart,        // an element is in one at most
    kOverlapping,  // an element may be in several
  };

  NestedDatasets(StageTable& stages, StageWalk& walk, GrowingDataset& dataset, CopyMarks& copies,
                 SectionCuts& sections)
      : stages_(stages), walk_(walk), dataset_(dataset), copies_(copies), sections_(sections) {}
  NestedDatasets(const NestedDatasets&) = delete;
  NestedDatasets& operator=(const NestedDatasets&) = delete;

  // PlanBuilder says of each of these what it is for.
  absl::StatusOr<std::vector<Dataset>> BuildInputs(const Inputs& inputs);
  absl::Status SetNested(const Inputs& input, const Factory& of_files, const Factory& of_values);
  absl::Status SetWindows(const Inputs& input, const Factory& make, WindowKind kind,
                          CursorClass cursor_class, std::optional<FileRange> paths);

  // The order of a source inside of a window, of elements of `width` references.
  static OrderFactory WindowOrder(uint32_t width);

  bool is_inside() const { return in_element_ || window_elements_ != nullptr; }
  const std::optional<FileRange>& element_files() const { return element_files_; }
  const WindowElements* window_elements() const { return window_elements_; }

 private:
  // The dataset of input number `i` of the stage's op.
  absl::StatusOr<Dataset> BuildInput(int i);

  StageTable& stages_;
  StageWalk& walk_;
  GrowingDataset& dataset_;
  CopyMarks& copies_;
  SectionCuts& sections_;
  // Of the stages that are being built: what they are inside of.
  bool in_element_ = false;
  std::optional<FileRange> element_files_;
  const WindowElements* window_elements_ = nullptr;
};

}  // namespace penstock
