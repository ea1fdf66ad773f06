// A chain of ops, or a tree of chains, as the plan puts it together: the order ops in front and the
// work behind.
//
// Threads: one thread, while a plan is made; then constant.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/signature.h"
#include "server/engine/order/copies.h"
#include "server/engine/order/order_op.h"
#include "server/engine/order/work_op.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/skip_limits.h"
#include "server/engine/tensor/batch_form.h"

namespace penstock {

// What going on from a cursor takes. From the cheapest on.
enum class CursorClass {
  kSeek,         // the same time at any position
  kReplayOrder,  // the order is gone through again, but no record is parsed
  kReplayData,   // the same, and values decide that order: they are computed again
};

struct WorkNode;

// What one stage has added to a node of work.
struct WorkPart {
  int stage = 0;
  bool batched = false;        // it stands behind a batch
  std::unique_ptr<WorkOp> op;  // null where the node is that one stage's
};

// One order op and what feeds it.
struct OrderNode {
  OrderNode();
  ~OrderNode();
  int stage = 0;
  CursorClass cursor_class = CursorClass::kSeek;
  bool decided_by_values = false;  // a section ends here
  OrderFactory make;
  std::vector<std::unique_ptr<OrderNode>> inputs;
  std::unique_ptr<OrderNode> nested;  // of the dataset that is made of each element of the input
  // Of such a dataset, where random functions need the paths of the elements that it is made of, or
  // of the first of them (FrontContext::scope).
  std::shared_ptr<const WorkNode> elements_paths;
  bool is_mark = false;  // of MarkingOrder(), which users need not hear of
  std::unique_ptr<WorkNode>
      values;  // what computes the elements that this op itself looks at, and nobody else
};

// How the columns of a block of rows come from its references: a tree whose leaves are sources.
struct WorkNode {
  enum class Kind {
    // The columns of one reference of each element; its input, if any, is the work of the section
    // that hands them over
    kLoad,
    kWork,    // a work op over its one input
    kTuple,   // the columns of all inputs, side by side
    kBranch,  // each row by the input that its first reference belongs to
  };

  Kind kind = Kind::kLoad;
  std::vector<int> stages;  // several where work ops were fused
  Signature output;
  std::vector<std::unique_ptr<WorkNode>> inputs;

  // kLoad
  std::unique_ptr<ColumnLoader> loader;
  uint32_t reference = 0;  // which of an element's

  // kWork. The parts that `op` was fused of, so that it can also be computed in two steps, and the
  // node's number among those whose results may be shared with other pipelines
  // (engine/share/shareable_work.h); -1: it is none of them.
  std::unique_ptr<WorkOp> op;
  std::vector<WorkPart> parts;
  int shareable = -1;

  // kBranch: the files of input i's first reference are those from first_files[i] on, in rising
  // order.
  std::vector<uint32_t> first_files;

  // The first file of the source of an element's first reference, of the lowest branch.
  uint32_t FirstFile() const;
  // The first file of any source below.
  uint32_t LowestFile() const;
  // The kLoad node of the source that a file belongs to; null when there is none.
  const WorkNode* SourceOf(uint32_t file) const;
  // kBranch: which input an element belongs to.
  size_t BranchOf(const RecordRef* element) const;
  // The path of an element (base/row_identity.h), of its references.
  uint64_t PathOf(const RecordRef* element) const;
  // Counts references from `by` on, behind those of other inputs.
  void MoveReferences(uint32_t by);

  uint32_t first_file = 0;  // kLoad: of its source

  // kLoad, kTuple: further references of an element, marks, by which its path differs from those of
  // its copies; 0: by none (engine/order/copies.h).
  std::vector<uint32_t> marks;
  // kTuple, kBranch: of each input, whether its elements may come again; a tuple is distinct where
  // they do so never in all of them.
  std::vector<bool> comes_again;
  bool is_distinct = false;

  // What PathOf() goes through, as it is now, with the loaders of this tree.
  std::shared_ptr<const WorkNode> PathsOnly() const;

 private:
  uint64_t PathWithoutMarks(const RecordRef* element) const;
};

// Files whose records are found by their ordinals.
struct IndexedFiles {
  FileRange files;
  std::shared_ptr<const RecordFormat> format =
      nullptr;              // with an access(); null where `permuted` is set
  bool gives_path = false;  // as ReadFormat::gives_path
  OnDamage on_damage = OnDamage::kFail;
  // Set where the source needs no index: its order as a permutation by this key, another one in
  // each epoch or not.
  std::function<OrderFactory(uint64_t key, bool reshuffle)> permuted = nullptr;
  SkipLimits limits = {};  // with OnDamage::kSkipRecord
};

class ElementCells;

struct Dataset {
  std::unique_ptr<OrderNode> order;
  std::unique_ptr<WorkNode> work;
  Signature signature;    // of one element, without the batch axis
  std::string structure;  // as in ring/layout.h
  uint32_t width = 0;     // references of an element
  std::optional<uint32_t> batch_rows;
  BatchForm batch;  // where there are batch_rows
  bool endless = false;
  // Set where the elements are the records of these files, each once, and nothing else has been
  // done to them.
  std::optional<IndexedFiles> indexed;
  // Set where every element is the path of one of these files.
  std::optional<FileRange> paths;
  // Set where the elements are those of a section, and nothing has been computed of them yet.
  const ElementCells* cells = nullptr;
  CopyState copies;
};

// Rows of `row_bytes` bytes that one task computes: a power of two. `are_away`: others compute
// them, and the task does nothing else.
uint32_t BlockRows(size_t row_bytes, bool are_away = false);
// About how many bytes a row of these features has, where strings and unknown sizes are guessed.
size_t EstimatedRowBytes(const Signature& signature);

// The structure of a flat dict of these features.
std::string DictStructure(const Signature& signature);

}  // namespace penstock
