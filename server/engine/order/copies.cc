#include "server/engine/order/copies.h"

#include <algorithm>
#include <utility>

#include "server/engine/order/dataset.h"

namespace penstock {
namespace {

// The stages of a work op that draw.
void TellDrawing(const WorkNode& node, const std::function<void(int stage)>& drawing) {
  for (const WorkPart& part : node.parts) {
    if ((part.op != nullptr ? *part.op : *node.op).draws()) drawing(part.stage);
  }
}

bool ComesAgain(const WorkNode& node, size_t input) {
  return input < node.comes_again.size() && node.comes_again[input];
}

// Goes through what AddMark() marks: `mark` is called with each node that gets one.
template <typename Node, typename Mark, typename Drawing>
bool VisitMarked(Node& node, const WorkNode* boundary, const Mark& mark, const Drawing& drawing) {
  switch (node.kind) {
    case WorkNode::Kind::kLoad:
      mark(node);
      return true;
    case WorkNode::Kind::kWork: {
      const bool marked = VisitMarked(*node.inputs[0], boundary, mark, drawing);
      if (marked && node.op->draws()) drawing(node);
      return marked;
    }
    case WorkNode::Kind::kTuple:
      for (size_t i = 0; i < node.inputs.size() && &node != boundary; ++i) {
        if (ComesAgain(node, i)) VisitMarked(*node.inputs[i], boundary, mark, drawing);
      }
      if (node.is_distinct) return false;
      mark(node);
      return true;
    case WorkNode::Kind::kBranch: {
      bool marked = false;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (ComesAgain(node, i))
          marked = VisitMarked(*node.inputs[i], boundary, mark, drawing) || marked;
      }
      return marked;
    }
  }
  return false;
}

class MarkOp final : public ChainedOrderOp {
 public:
  MarkOp(FrontContext& context, std::unique_ptr<OrderOp> input)
      : ChainedOrderOp(std::move(input)), context_(context) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    const size_t before = out.size();
    const Pulled result = input().Pull(count, out, pulled);
    AddMarks(before, out);
    return result;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override { return input().Skip(count, skipped); }
  void Restart(uint64_t epoch) override {
    scope_pass_ = context_.scope_pass;
    ChainedOrderOp::Restart(epoch);
  }
  std::optional<uint64_t> CountRows() override { return input().CountRows(); }
  uint32_t width() const override { return input().width() + 1; }

 private:
  // Behind each of the elements from there on, which move apart.
  void AddMarks(size_t begin, RecordList& out) {
    const uint32_t width = input().width();
    const size_t elements = (out.size() - begin) / width;
    const uint64_t scope = MixPath(context_.scope, scope_pass_);
    out.resize(out.size() + elements);
    for (size_t i = elements; i-- > 0;) {
      const auto from = out.begin() + begin + i * width;
      const auto to = out.begin() + begin + i * (width + 1);
      uint64_t mark = scope;
      for (uint32_t j = 0; j < width; ++j) mark = MixPath(mark, from[j].epoch);
      std::move_backward(from, from + width, to + width);
      // As far as the dataset goes, the passes inside of it are told by the marks.
      for (uint32_t j = 0; j < width && context_.nested; ++j) to[j].epoch = context_.element_epoch;
      to[width] = RecordRef{};
      to[width].offset = mark;
      to[width].file = UINT32_MAX;
      to[width].epoch = to[0].epoch;
    }
  }

  FrontContext& context_;
  uint64_t scope_pass_ = 0;
};

}  // namespace

void JoinCopies(const std::vector<CopyState*>& inputs, WorkNode* work, CopyState* joined) {
  bool is_once = false, is_keyed = false;
  for (const CopyState* const input : inputs) {
    joined->passes |= input->passes;
    joined->unkeyed |= input->unkeyed;
    joined->marked |= input->marked;
    // A place does not say which pass of one of them it was.
    joined->same_place |= input->same_place || input->passes;
    joined->changed |= input->changed;
    joined->repeats.insert(joined->repeats.end(), input->repeats.begin(), input->repeats.end());
    joined->sections.insert(joined->sections.end(), input->sections.begin(), input->sections.end());
    is_once = is_once || (!input->passes && !input->marked);
    is_keyed = is_keyed || (!input->unkeyed && !input->marked);
    work->comes_again.push_back(input->passes || input->unkeyed);
  }
  if (work->kind != WorkNode::Kind::kTuple) return;
  work->is_distinct = is_once && is_keyed;
  if (work->is_distinct) {
    joined->marked = false;
    return;
  }
  for (const std::unique_ptr<WorkNode>& input : work->inputs) {
    for (const uint32_t mark : MarksOf(*input)) work->marks.push_back(mark);
  }
}

bool AddMark(WorkNode& work, uint32_t reference, const WorkNode* boundary,
             const std::function<void(int stage)>& drawing) {
  return VisitMarked(
      work, boundary, [reference](WorkNode& node) { node.marks.push_back(reference); },
      [&drawing](const WorkNode& node) { TellDrawing(node, drawing); });
}

bool NeedsMark(const WorkNode& work, const WorkNode* boundary) {
  bool draws = false;
  const bool root = VisitMarked(
      work, boundary, [](const WorkNode&) {}, [&draws](const WorkNode&) { draws = true; });
  return root || draws;
}

void ComeAgain(WorkNode& work) {
  if (work.kind == WorkNode::Kind::kLoad) return;
  work.comes_again.assign(work.inputs.size(), true);
  work.is_distinct = false;
  for (const std::unique_ptr<WorkNode>& input : work.inputs) ComeAgain(*input);
}

std::vector<uint32_t> MarksOf(const WorkNode& work) {
  if (work.kind == WorkNode::Kind::kLoad || work.kind == WorkNode::Kind::kTuple) return work.marks;
  std::vector<uint32_t> marks;
  for (const std::unique_ptr<WorkNode>& input : work.inputs) {
    for (const uint32_t mark : MarksOf(*input)) {
      if (std::find(marks.begin(), marks.end(), mark) == marks.end()) marks.push_back(mark);
    }
  }
  return marks;
}

bool AnyDraws(const WorkNode& work) {
  if (work.kind == WorkNode::Kind::kLoad) return false;
  if (work.kind == WorkNode::Kind::kWork && work.op->draws()) return true;
  return std::any_of(work.inputs.begin(), work.inputs.end(),
                     [](const std::unique_ptr<WorkNode>& input) { return AnyDraws(*input); });
}

OrderFactory MarkingOrder() {
  return [](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<MarkOp>(context, std::move(inputs[0]));
  };
}

}  // namespace penstock
