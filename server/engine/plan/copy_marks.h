// Marks for elements that come more than once, while a plan is made: each copy is to draw for
// itself (engine/order/copies.h).
//
// Threads:  one thread, while a plan is made.
#pragma once

#include <memory>
#include <optional>

#include "server/engine/order/copies.h"
#include "server/engine/plan/growing_dataset.h"
#include "server/engine/plan/stage_table.h"
#include "server/engine/plan/stage_walk.h"

namespace penstock {

class CopyMarks {
 public:
  CopyMarks(StageTable& stages, const StageWalk& walk, GrowingDataset& dataset);
  CopyMarks(const CopyMarks&) = delete;
  CopyMarks& operator=(const CopyMarks&) = delete;

  // Whether some stage calls a random function. Nothing is marked where none does.
  bool draws() const { return draws_; }
  // Whether something draws, and several elements may be known by one place.
  bool needs_paths() const;
  // Some elements are known by other paths than by the first meaning.
  void ChangePaths();
  // The stage draws, for each copy by another path where there are such.
  void AddDrawing();

  // Adds a mark to each element, where a path lacks what tells it from its copies. Returns whether
  // one does.
  bool Mark();
  // The same inside of a scope; nothing is marked outside of any.
  bool MarkInScope() { return scope_ && Mark(); }
  // PlanBuilder::MarkWrapped(), BeginRepeat(), KeyByElement().
  bool MarkWrapped();
  std::shared_ptr<const PassNumbers> BeginRepeat(bool is_several);
  void KeyByElement(bool by_its_file);

  // The dataset of a source, as it is by itself.
  void BeginLeaf(Dataset& leaf) const { leaf.copies.unkeyed = draws_ && scope_.has_value(); }
  // A section has taken the elements up, which were marked for it or not.
  void EndSection(Section& section, bool is_marked);

  // Where stages stand that are for each element of another dataset.
  struct Scope {
    CopyState source;               // of what is made of the element
    bool file_comes_again = false;  // of which the element is the path
    // What was in front of the stages, where that is in the same tree.
    const WorkNode* boundary = nullptr;
  };
  bool in_scope() const { return scope_.has_value(); }
  // Such stages begin over what stands so far, which they are `over`, or have nothing to do with.
  // Returns the scope around.
  std::optional<Scope> BeginScope(Scope scope, bool is_over);
  // They end: what stands then is the dataset of an element of `outer`.
  void EndScope(std::optional<Scope> around, const CopyState& outer);
  // They have failed.
  void LeaveScope(std::optional<Scope> around) { scope_ = std::move(around); }

 private:
  // Marks a section in front, whose elements are to come again.
  void MarkUpstream(CopyState::Upstream& upstream);
  void RaiseDrawing(int stage);

  StageTable& stages_;
  const StageWalk& walk_;
  GrowingDataset& dataset_;
  const bool draws_;
  std::optional<Scope> scope_;
};

}  // namespace penstock
