// What a stage tells the plan about itself, and may ask of it: all that ops see of the building of
// a plan.
//
// An op reads the signature of the elements before it, checks its options, and adds itself as order
// op or as work op. The builder has a part for each thing that it has to know, and nothing of its
// own:
//
//     StageTable       the stages: what each is called, and has turned out to be     kept by the plan
//     StageWalk        which one is being built, and what stands around it
//     PlanFiles        the files, and which source reads which                       kept by the plan
//     GrowingDataset   what the stages so far have made                              kept by the plan
//     CopyMarks        elements that come more than once, and are to draw for themselves
//     SectionCuts      where values decide, and elements lie in cells behind it
//     NestedDatasets   inputs, and datasets that are made for each element or window
//
// Threads:  one thread; it is gone when the plan is made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/signature.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/order/dataset.h"
#include "server/engine/order/order_op.h"
#include "server/engine/order/work_op.h"
#include "server/engine/plan/built_plan.h"
#include "server/engine/plan/copy_marks.h"
#include "server/engine/plan/growing_dataset.h"
#include "server/engine/plan/nested_datasets.h"
#include "server/engine/plan/plan_files.h"
#include "server/engine/plan/section_cuts.h"
#include "server/engine/plan/stage_table.h"
#include "server/engine/plan/stage_walk.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/skip_limits.h"
#include "server/engine/section/split_op.h"
#include "server/engine/spec/op_traits.h"

namespace penstock {

class PlanBuilder {
 public:
  PlanBuilder(v1::PipelineSpec spec, FileSystem& files);

  // Once: builds all stages of the spec.
  absl::StatusOr<BuiltPlan> Build();

  // --- for ops: the stage ---
  // What stands before the stage in its list: the stages with their nested ones, and the files of
  // their sources.
  struct Upstream {
    std::vector<const v1::Stage*> stages;
    uint32_t first_file = 0;
    Manifest files;        // from that one on
    std::string meanings;  // of the stages' ops, where they are not 1
  };
  Upstream upstream() const;
  const std::string& stage() const { return walk_.name(); }
  int stage_index() const { return walk_.number(); }
  v1::Stage& stage_spec() { return walk_.message(); }
  v1::PipelineSpec& spec() { return stages_.spec(); }
  bool is_last_stage() const { return walk_.is_last(); }
  // Of what the stage draws by this seed of its own.
  uint64_t DrawKey(int64_t seed) const { return walk_.DrawKey(seed); }
  // The stage decides the order, though it has added work last.
  void MarkStageAsOrder() { stages_.SetKind(walk_.number(), StageKind::kOrder); }
  // The stage means something else in this plan than in releases in which its op's number was
  // lower: their cursors, journals and caches are not those of this plan. Where several things do,
  // the highest number holds.
  void RaiseMeaning(OpMeaning meaning) { stages_.RaiseMeaning(walk_.number(), std::move(meaning)); }
  // Says in Explain() what the user should know of this stage.
  void AddNotice(const std::string& notice) { stages_.AddNotice(walk_.number(), notice); }

  // --- the elements before it ---
  // One element as it leaves the stage before, without the batch axis.
  const Signature& signature() const { return dataset_.now().signature; }
  const std::string& structure() const { return dataset_.now().structure; }
  // How the features that stand so far make up an element, where a source's own notion is another
  // one.
  void SetStructure(std::string structure) { dataset_.now().structure = std::move(structure); }
  // Whether elements are more than what a source has loaded.
  bool is_computed() const { return dataset_.is_computed(); }
  // The cells that the elements are in, which live as long as the plan; null where they are in
  // none.
  const ElementCells* cells() const { return dataset_.now().cells; }
  // What stands so far is every record of these files once, in any order that one likes: a global
  // shuffle may take their place. It stays so while the source's own stage adds work.
  void SetIndexed(IndexedFiles indexed) { dataset_.now().indexed = std::move(indexed); }
  const std::optional<IndexedFiles>& indexed() const { return dataset_.now().indexed; }
  // What stands so far are the paths of these files, in any order and number.
  void SetPaths(FileRange files) { dataset_.now().paths = files; }
  void SetEndless(bool endless) { dataset_.now().endless = endless; }

  // --- files and sources ---
  FileSystem& files() const { return files_.system(); }
  // Makes files known; a source that reads none adds one without a name, by which its references
  // are told from others. Called by sources.
  FileRange AddFiles(Manifest files) { return files_.Add(std::move(files), walk_.number()); }
  // The files hold records, found by their offsets; of that format where an index finds them, else
  // null.
  void SetRecordFiles(FileRange files, std::shared_ptr<const RecordFormat> indexed) {
    files_.SetRecordFiles(files, std::move(indexed));
  }
  // Nothing can be read of these files without their index.
  void NeedIndex(IndexedFiles indexed) { files_.NeedIndex(std::move(indexed)); }
  // Begins the dataset: `make` deals in references to those files, which `loader` turns into
  // columns.
  void SetSource(std::unique_ptr<ColumnLoader> loader, FileRange files, OrderFactory make,
                 CursorClass cursor_class = CursorClass::kSeek);

  // The source of indexed() deals in another order, whose references `loader` turns into the same
  // columns. REQUIRES: indexed().
  void ReorderSource(std::unique_ptr<ColumnLoader> loader, OrderFactory make) {
    dataset_.ReorderSource(std::move(loader), std::move(make));
  }

  // --- order and work ---
  void AddOrder(OrderFactory make, CursorClass cursor_class = CursorClass::kSeek) {
    dataset_.AddOrder(std::move(make), cursor_class);
  }
  // The element's features become those of `op`, which make up `structure`; absent: a dict.
  void AddWork(std::unique_ptr<WorkOp> op, std::string structure = "");

  // --- batches ---
  bool batched() const { return dataset_.batched(); }
  // How the elements become batches. REQUIRES: batched().
  const BatchForm& batch_form() const { return dataset_.now().batch; }
  // The elements of every batch, where all have as many; absent also where there are no batches.
  std::optional<uint32_t> full_batch_rows() const { return dataset_.full_batch_rows(); }
  // Joins elements to batches of `rows`. A `padded_batch` changes the shapes of features, but not
  // what its rows are computed from: PadsRows() tells whether it does.
  void SetBatch(uint32_t rows, BatchForm form) { dataset_.SetBatch(rows, std::move(form)); }
  // Batches that stand already pad their rows to the longest from here on, with these elements, one
  // for each feature.
  void PadBatch(std::vector<std::string> values) { dataset_.PadBatch(std::move(values)); }
  bool PadsRows() const { return dataset_.PadsRows(); }
  // The elements of the batches that stood so far.
  void ClearBatch() { dataset_.now().batch_rows.reset(); }
  // Batches become elements like any others, with the batch axis in their features' shapes: for ops
  // that treat each as a whole. Nothing is done where there are none. Ragged and sparse ones become
  // packed rows (RowForm).
  absl::Status EndBatches() { return sections_.EndBatches(); }

  // --- sections ---
  // Ends a section: what stands so far is computed ahead, and `split` makes of it the elements that
  // follow, whose structure is given. REQUIRES: !batched().
  void EndSection(std::unique_ptr<SplitOp> split, std::string structure, size_t hidden = 0) {
    sections_.End(std::move(split), std::move(structure), hidden);
  }
  // The same where every element makes one, so that the front can look at its values
  // (ElementCells). The features of `op` are `hidden` ones that are only for the front, and then
  // those of the elements as they were.
  void EndSectionWith(std::unique_ptr<WorkOp> op, size_t hidden) {
    sections_.EndWith(std::move(op), hidden);
  }
  // The same with nothing hidden; nothing is done where the elements are in cells already.
  void EndSectionAsIs() { sections_.EndAsIs(); }
  // The same where cells are to hold nothing but the elements, since others load them.
  void EndSectionAlone() { sections_.EndAlone(); }
  // Where an ignore_errors follows, elements that fail up to here are left out here and not behind
  // the stage, which counts or joins them. InvalidArgument as EndBatches().
  absl::Status LeaveOutFailures() { return sections_.LeaveOutFailures(); }
  // Where one follows in this list of stages, or in one around it, and nothing in between keeps
  // elements in step with others.
  const std::optional<IgnoredFailures>& ignored() const { return walk_.ignored(); }
  // Whether what stands so far can fail by the values of its elements.
  bool can_fail() const { return sections_.can_fail(); }
  // The elements are others from here on, which an order op that is added next makes in the front,
  // one for each of `input` that it sees or fewer: in those cells, which live as long as the plan.
  // `input` becomes the work that computes what it sees.
  const ElementCells* BeginInFront(Signature signature, std::string structure,
                                   const WorkNode** input) {
    return sections_.BeginInFront(std::move(signature), std::move(structure), input);
  }
  // The same where `loader` has the elements of what the op makes, in one reference each. It may
  // use what stood so far, which lives as long as the plan.
  void BeginLoaded(std::unique_ptr<ColumnLoader> loader, std::string structure) {
    sections_.BeginLoaded(std::move(loader), std::move(structure));
  }

  // --- ops that make a dataset of each element ---
  // The nested stages are built, and the dataset becomes that of their elements, of `width`
  // references each, in the order of the op that is made of the nested order: by `of_files` where
  // it is one of the element's path, or needs nothing of the element; by `of_values` where it is
  // made of the element's values (FrontContext::window).
  using NestedFactory = NestedDatasets::Factory;
  absl::Status SetNested(const NestedDatasets::Inputs& input, const NestedFactory& of_files,
                         const NestedFactory& of_values) {
    return nested_.SetNested(input, of_files, of_values);
  }
  // The same of several elements (FrontContext::window): of their elements and the nested stages,
  // if any. `width` is that of the elements in the window.
  using WindowKind = NestedDatasets::WindowKind;
  absl::Status SetWindows(const NestedDatasets::Inputs& input, const NestedFactory& make,
                          WindowKind kind, CursorClass cursor_class = CursorClass::kSeek) {
    return nested_.SetWindows(input, make, kind, cursor_class, /*paths=*/std::nullopt);
  }
  // The order of a source inside of such stages, of elements of `width` references.
  static OrderFactory WindowOrderFactory(uint32_t width) {
    return NestedDatasets::WindowOrder(width);
  }
  // Inside of a dataset that is made anew for each element of another one.
  bool nested() const { return nested_.is_inside(); }
  // Inside of a dataset that is made of one path: the files that it may be.
  const std::optional<FileRange>& element_files() const { return nested_.element_files(); }
  // Inside of stages of a window: what its elements are; null elsewhere.
  const WindowElements* window_elements() const { return nested_.window_elements(); }

  // --- ops with several inputs ---
  // What stands before the stage, if anything, is the first of them.
  absl::StatusOr<std::vector<Dataset>> BuildInputs(const NestedDatasets::Inputs& inputs) {
    return nested_.BuildInputs(inputs);
  }
  Dataset MakeLeaf(std::unique_ptr<ColumnLoader> loader, FileRange files, OrderFactory make);
  Dataset TakeDataset() { return dataset_.Take(); }
  // The dataset becomes that of their tuples (TupleOf), or of elements of any of them (BranchesOf).
  void SetTuple(std::vector<Dataset> inputs, OrderFactory make);
  void SetBranches(std::vector<Dataset> inputs, OrderFactory make,
                   std::optional<Dataset> chooser = std::nullopt);

  // --- copies of elements (engine/order/copies.h) ---
  // Called by `repeat` in front of its order op: `is_several`, whether it has more than one pass.
  std::shared_ptr<const PassNumbers> BeginRepeat(bool is_several) {
    return copies_.BeginRepeat(is_several);
  }
  // What the source gives is the element's that the dataset around it is made of, and of no other
  // one.
  void KeyByElement(bool by_its_file) { copies_.KeyByElement(by_its_file); }
  // The order op of a batch that is filled up from the beginning of the pass is to add a mark to
  // each element: how often the pass has begun again. False where nothing asks for it.
  bool MarkWrapped() { return copies_.MarkWrapped(); }
  // Some elements are known by other paths than by the first meaning.
  void ChangePaths() { copies_.ChangePaths(); }
  // Whether something draws, and several elements may be known by one place.
  bool needs_paths() const { return copies_.needs_paths(); }

 private:
  StageTable stages_;
  StageWalk walk_;
  PlanFiles files_;
  GrowingDataset dataset_;
  CopyMarks copies_;
  SectionCuts sections_;
  NestedDatasets nested_;
};

}  // namespace penstock
