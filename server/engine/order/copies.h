// Elements that come more than once, as random functions know them (base/row_identity.h): each copy
// is to draw for itself behind the place where it became one.
//
// A path tells elements by their records and passes. That is not enough where a dataset that is
// made for each element has a `repeat`, or a source of its own; in windows that overlap; in a batch
// that is filled up from the beginning of the pass; and in front of a `repeat` that has another one
// before it. There an element gets one more reference, its *mark*: a number mixed of all that tells
// it from its copies. The mark becomes part of the path of what is computed behind the place, and
// of what is computed anew for each copy, but not of what was in front of it once.
//
//   windows ─► WindowOrder ─► repeat ─► MarkingOrder ─┐ elements of two references      [ work that draws ]
//              path, pass     relative   path, pass, │                                   path, mark
//              of the window  passes     mark        └───────────────────────────────►
//
// While a plan is made, CopyState says of a dataset what its paths lack. Where nothing is lacking,
// and where nothing draws, there are no marks, and paths are what they were without them.
//
// Threads:  one at a time, while a plan is made; MarkingOrder()'s op: the front's lock.
// Cost:     a mark is a reference of 32 bytes for each element.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/engine/order/order_op.h"

namespace penstock {

struct Section;
struct WorkNode;

// Of a `repeat`: whether it numbers its passes from 0 on in each dataset that is made for an
// element, for the marks behind it. Set while the plan is made.
struct PassNumbers {
  bool relative = false;
};

// What the paths of a dataset's elements lack.
struct CopyState {
  // A section in front, and what has to be marked where its elements are to come again.
  struct Upstream {
    Section* section = nullptr;
    OrderNode* order = nullptr;
    std::vector<std::shared_ptr<PassNumbers>> repeats;  // in front of it
    const WorkNode* boundary = nullptr;                 // as AddMark()
    bool is_marked = false;
  };

  // Elements that are alike may differ in their passes alone, which others will number anew.
  bool passes = false;
  // Inside of a dataset that is made for each element: those for different elements may be alike.
  bool unkeyed = false;
  // Elements may be alike but for their marks.
  bool marked = false;
  // Several elements may be known by one place: what knows them by it alone takes them for one.
  bool same_place = false;
  // Some paths are others than those of the first meaning.
  bool changed = false;
  // Behind the last mark or section.
  std::vector<std::shared_ptr<PassNumbers>> repeats;
  // Of the present list of stages, inside of a dataset that is made for each element.
  std::vector<Upstream> sections;
};

// Joins what the inputs of a tuple or of branches lack, whose work is `work` with its inputs.
void JoinCopies(const std::vector<CopyState*>& inputs, WorkNode* work, CopyState* joined);

// Adds the reference to the paths of all of the tree whose elements may come again, but for what is
// in front of `boundary`. Returns whether that of its root is among them; `drawing` is called with
// every stage that draws by such a path.
bool AddMark(WorkNode& work, uint32_t reference, const WorkNode* boundary,
             const std::function<void(int stage)>& drawing);
// Whether AddMark() would change the path of the root, or of anything that draws.
bool NeedsMark(const WorkNode& work, const WorkNode* boundary);
// From here on all elements may come again.
void ComeAgain(WorkNode& work);
// The marks of a tuple of these, behind MoveReferences().
std::vector<uint32_t> MarksOf(const WorkNode& work);
// Whether anything in the tree draws, that of sections in front left out.
bool AnyDraws(const WorkNode& work);

// Adds a mark to each element: of the dataset that is made for an element (FrontContext::scope), of
// the pass of a `repeat` behind it there (FrontContext::scope_pass), and of the passes of its
// references. Its position is its input's.
OrderFactory MarkingOrder();

}  // namespace penstock
