// What a stage tells the plan about itself.
//
// An op reads the signature of the elements before it, checks its options, and adds itself as order
// op or as work op.
#pragma once

#include <cstdint>
#include <functional>
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
#include "server/engine/plan/op_meaning.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/skip_limits.h"
#include "server/engine/section/split_op.h"

namespace penstock {

class ElementCells;
struct Section;

// The elements of a window, as the stages inside of it find them.
struct WindowElements {
  Signature signature;
  std::string structure;
  const ElementCells* cells = nullptr;
  uint32_t first_file = 0;  // of their source
};

// What a stage has turned out to be.
enum class StageKind {
  kHint,   // neither of the others
  kOrder,  // sequential, with a position
  kWork,   // a pure function of rows
};

class PlanBuilder {
 public:
  PlanBuilder(v1::PipelineSpec spec, FileSystem& files);

  // --- for ops ---
  // What stands before the stage in its list: the stages with their nested ones, and the files of their sources.
  struct Upstream {
    std::vector<const v1::Stage*> stages;
    uint32_t first_file = 0;
    Manifest files;        // from that one on
    std::string meanings;  // of the stages' ops, where they are not 1
  };
  Upstream upstream();
  const std::string& stage() const { return stage_names_[stage_]; }
  int stage_index() const { return stage_; }
  // Of what the stage draws by this seed of its own.
  uint64_t DrawKey(int64_t seed) const;
  FileSystem& files() const { return files_; }

  // One element as it leaves the stage before, without the batch axis.
  const Signature& signature() const { return dataset_.signature; }
  const std::string& structure() const { return dataset_.structure; }
  bool batched() const { return dataset_.batch_rows.has_value(); }
  // How they become batches. REQUIRES: batched().
  const BatchForm& batch_form() const { return dataset_.batch; }

  // Makes files known; a source that reads none adds one without a name, by which its references are told from others. Called by
  // sources.
  FileRange AddFiles(Manifest files);
  // Begins the dataset: `make` deals in references to those files, which `loader` turns into columns.
  void SetSource(std::unique_ptr<ColumnLoader> loader, FileRange files, OrderFactory make,
                 CursorClass cursor_class = CursorClass::kSeek);
  void AddOrder(OrderFactory make, CursorClass cursor_class = CursorClass::kSeek);
  // The element's features become those of `op`, which make up `structure`; absent: a dict.
  void AddWork(std::unique_ptr<WorkOp> op, std::string structure = "");
  // The stage decides the order, though it has added work last.
  void MarkStageAsOrder() { stage_kinds_[stage_] = StageKind::kOrder; }
  // Ends a section: what stands so far is computed ahead, and `split` makes of it the elements that follow, whose structure is given.
  // REQUIRES: !batched().
  void EndSection(std::unique_ptr<SplitOp> split, std::string structure, size_t hidden = 0);
  // The same where every element makes one, so that the front can look at its values (ElementCells). The features of `op` are `hidden` ones
  // that are only for the front, and then those of the elements as they were.
  void EndSectionWith(std::unique_ptr<WorkOp> op, size_t hidden);
  // The same with nothing hidden; nothing is done where the elements are in cells already.
  void EndSectionAsIs();
  // The same where cells are to hold nothing but the elements, since others load them.
  void EndSectionAlone();
  // The same where nobody looks at the elements: cells hold nothing, and what computes them is done for its failures.
  void EndSectionEmpty();
  // Where an ignore_errors follows, elements that fail up to here are left out here and not behind the stage, which counts or joins them.
  // InvalidArgument as EndBatches().
  absl::Status LeaveOutFailures();
  // Where one follows in this list of stages, or in one around it, and nothing in between keeps elements in step with others.
  const std::optional<IgnoredFailures>& ignored() const { return ignored_; }
  // Whether what stands so far can fail by the values of its elements.
  bool can_fail() const;
  // The cells that the elements are in, which live as long as the plan; null where they are in none.
  const ElementCells* cells() const { return dataset_.cells; }
  // Whether elements are more than what a source has loaded.
  bool is_computed() const { return dataset_.work->kind != WorkNode::Kind::kLoad; }
  // How the features that stand so far make up an element, where a source's own notion is another one.
  void SetStructure(std::string structure) { dataset_.structure = std::move(structure); }
  // The elements are others from here on, which an order op that is added next makes in the front, one for each of `input` that it sees or
  // fewer: in those cells, which live as long as the plan. `input` becomes the work that computes what it sees.
  const ElementCells* BeginInFront(Signature signature, std::string structure,
                                   const WorkNode** input);
  // The elements of the batches that stood so far.
  void ClearBatch() { dataset_.batch_rows.reset(); }
  // Batches become elements like any others, with the batch axis in their features' shapes: for ops that treat each as a whole.
  // Nothing is done where there are none. Ragged and sparse ones become packed rows (RowForm).
  absl::Status EndBatches();
  // Joins elements to batches of `rows`. A `padded_batch` changes the shapes of features, but not
  // what its rows are computed from: PadsRows() tells whether it does.
  void SetBatch(uint32_t rows, BatchForm form);
  // Batches that stand already pad their rows to the longest from here on, with these elements, one for each feature.
  void PadBatch(std::vector<std::string> values);
  bool PadsRows() const;
  // The elements of every batch, where all have as many; absent also where there are no batches.
  std::optional<uint32_t> full_batch_rows() const {
    const Remainder remainder = dataset_.batch.remainder;
    const bool full = remainder == Remainder::kDrop || remainder == Remainder::kWrap;
    return batched() && full ? dataset_.batch_rows : std::nullopt;
  }
  // What stands so far is every record of these files once, in any order that one likes: a global shuffle may take their place.
  void SetIndexed(IndexedFiles indexed) { dataset_.indexed = indexed; }
  const std::optional<IndexedFiles>& indexed() const { return dataset_.indexed; }
  // Nothing can be read of these files without their index.
  void NeedIndex(IndexedFiles indexed) { needed_indices_.push_back(indexed); }
  // What stands so far are the paths of these files, in any order and number.
  void SetPaths(FileRange files) { dataset_.paths = files; }
  // Inside a dataset that is made anew for each element of another one.
  bool nested() const { return nested_ || window_elements_ != nullptr; }
  // Inside a dataset that is made of one path: the files that it may be.
  const std::optional<FileRange>& element_files() const { return element_files_; }
  // The files hold records, found by their offsets.
  void SetRecordFiles(FileRange files, bool plain_tfrecord);
  void SetEndless(bool endless) { dataset_.endless = endless; }

  // For ops that make a dataset of each element. The nested stages are built, and the dataset becomes that of their elements, of `width`
  // references each, in the order of the op that is made of the nested order: by `of_files` where it is one of the element's path, or needs
  // nothing of the element; by `of_values` where it is made of the element's values (FrontContext::window).
  using NestedFactory = std::function<OrderFactory(const OrderNode& nested, uint32_t width)>;
  absl::Status SetNested(const google::protobuf::RepeatedPtrField<v1::Input>& input,
                         const NestedFactory& of_files, const NestedFactory& of_values);
  // For ops that make a dataset of several elements (FrontContext::window): the same, of their elements and the nested stages, if any.
  // `width` is that of the elements in the window.
  absl::Status SetWindows(const google::protobuf::RepeatedPtrField<v1::Input>& input,
                          const NestedFactory& make, CursorClass cursor_class = CursorClass::kSeek,
                          std::optional<FileRange> paths = std::nullopt);
  // The order of a source inside of such stages, of elements of `width` references.
  static OrderFactory WindowOrderFactory(uint32_t width);
  // Inside of such stages: what the elements of the window are; null elsewhere.
  const WindowElements* window_elements() const { return window_elements_; }

  // For ops with several inputs. What stands before the stage, if anything, is the first of them.
  absl::StatusOr<std::vector<Dataset>> BuildInputs(
      const google::protobuf::RepeatedPtrField<v1::Input>& inputs);
  Dataset MakeLeaf(std::unique_ptr<ColumnLoader> loader, FileRange files, OrderFactory make);
  Dataset TakeDataset() { return std::exchange(dataset_, Dataset{}); }
  // The dataset becomes that of their tuples; `make` gets the order ops of those inputs that have one, and gives the references of
  // input i in front of those of input i + 1.
  void SetTuple(std::vector<Dataset> inputs, OrderFactory make);
  // The dataset becomes that of elements of any of the inputs, whose signatures are equal.
  // The op's first input is `chooser`, if there is one, whose elements nobody else takes.
  void SetBranches(std::vector<Dataset> inputs, OrderFactory make,
                   std::optional<Dataset> chooser = std::nullopt);

  // The stage means something else in this plan than in releases in which its op's number was lower: their cursors, journals and caches
  // are not those of this plan. Where several things do, the highest number holds.
  void RaiseMeaning(OpMeaning meaning);
  // Says in Explain() what the user should know of this stage.
  void AddNotice(std::string notice) { notices_.push_back(stage() + ": " + std::move(notice)); }
  bool is_last_stage() const { return stage_message_ == &spec_.stage(spec_.stage_size() - 1); }
  v1::PipelineSpec& spec() { return spec_; }
  v1::Stage& stage_spec() { return *stage_message_; }

 private:
  friend class PlanImpl;

  void MarkOrder(const WorkNode& node);
  void BeginAfter(const std::shared_ptr<Section>& section, Signature signature,
                  std::string structure, size_t hidden = 0);
  const ElementCells* BeginInCells(int stage, Signature signature, std::string structure,
                                   size_t hidden, bool of_batches = false);
  // Of those that this work computes: whether the place that they are known by is that of a batch; absent where they have none.
  std::optional<bool> LocatesBatch(const WorkNode& work) const;
  absl::Status Build();
  // The nested stages of input number `i` of the stage's op, from its own message: nested ops fill in seeds.
  absl::StatusOr<Dataset> BuildInput(int i);
  absl::Status BuildStages(google::protobuf::RepeatedPtrField<v1::Stage>* stages,
                           bool from_source = true);
  v1::Input* NestedInput(int i);
  absl::Status BuildStage(v1::Stage* stage, bool is_first);
  // What is ignored of stage `i` of the list by one behind it, or else `around`.
  std::optional<IgnoredFailures> FindIgnored(
      const google::protobuf::RepeatedPtrField<v1::Stage>& stages, int i,
      const std::optional<IgnoredFailures>& around);

  v1::PipelineSpec spec_;
  FileSystem& files_;
  std::vector<std::string> stage_names_;  // in the order of the text, nested ones behind their op
  std::vector<StageKind> stage_kinds_;    // the same
  std::vector<OpMeaning> meanings_;       // the same
  int num_stages_ = 0;                    // that have been begun
  int stage_ = 0;                         // the one that is being built
  v1::Stage* stage_message_ = nullptr;
  google::protobuf::RepeatedPtrField<v1::Stage>* stage_list_ = nullptr;  // where that one stands
  Dataset dataset_;
  std::optional<IgnoredFailures> ignored_;  // of the stage that is being built
  std::optional<FileRange> element_files_;
  bool nested_ = false;
  const WindowElements* window_elements_ = nullptr;
  std::unique_ptr<Manifest> manifest_ = std::make_unique<Manifest>();
  std::vector<FileRange> sources_;  // which of its files each source reads
  std::vector<int> source_stages_;  // the stage of each
  std::vector<IndexedFiles> needed_indices_;
  std::vector<std::string> notices_;
};

}  // namespace penstock
