#include "server/engine/share/shareable_work.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/signature.h"
#include "server/engine/spec/constant_file.h"
#include "server/engine/spec/deterministic_bytes.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

// The node's work up to part `i`, or that part alone.
const WorkOp& OpOf(const WorkNode& node, size_t i) {
  return node.parts[i].op != nullptr ? *node.parts[i].op : *node.op;
}

class Finder {
 public:
  explicit Finder(const WorkToShare& plan) : spec_(*plan.spec), stages_(AllStages(spec_)) {}

  std::vector<ShareableChain> Find(const WorkNode& work) && {
    End(Visit(work));
    return std::move(chains_);
  }

 private:
  // Adds the chains below a node; returns the one that goes on in it, if there is one.
  std::optional<ShareableChain> Visit(const WorkNode& node) {
    if (node.kind == WorkNode::Kind::kLoad && node.inputs.empty()) {
      ShareableChain chain;
      chain.source = &node;
      return chain;
    }
    std::optional<ShareableChain> chain;
    for (const std::unique_ptr<WorkNode>& input : node.inputs) {
      std::optional<ShareableChain> below = Visit(*input);
      if (node.kind == WorkNode::Kind::kWork) {
        chain = std::move(below);
      } else {
        End(std::move(below));
      }
    }
    if (!chain) return chain;
    if (!Add(node, &*chain)) {
      End(std::move(chain));
      return std::nullopt;
    }
    return chain;
  }

  // False when the chain ends before the node's last part.
  bool Add(const WorkNode& node, ShareableChain* chain) const {
    if (chain->levels.empty() && chain->source->loader->ContentKey().empty()) return false;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const WorkPart& part = node.parts[i];
      const WorkOp& op = OpOf(node, i);
      // What others compute may be whose code it likes.
      if (op.draws() || op.away() != nullptr) return false;
      v1::Stage stage = *stages_[part.stage];
      stage.clear_name();
      StripConstantFiles(&stage);
      ShareableLevel level;
      if (chain->levels.empty()) level.text = chain->source->loader->ContentKey() + "\n";
      absl::StrAppend(&level.text, part.batched ? "batched " : "", SignatureToString(op.output()),
                      "\n", DeterministicBytes(stage));
      level.node = &node;
      level.parts = i + 1;
      level.stage = part.stage;
      chain->levels.push_back(std::move(level));
    }
    return true;
  }

  void End(std::optional<ShareableChain> chain) {
    if (chain && !chain->levels.empty()) chains_.push_back(*std::move(chain));
  }

  v1::PipelineSpec spec_;  // a copy, since stages are looked up in one that may be changed
  const std::vector<v1::Stage*> stages_;
  std::vector<ShareableChain> chains_;
};

}  // namespace

std::vector<ShareableChain> FindShareable(const WorkToShare& plan) {
  return Finder(plan).Find(*plan.work);
}

int NumberShareable(WorkNode& work, int next) {
  for (const std::unique_ptr<WorkNode>& input : work.inputs) next = NumberShareable(*input, next);
  if (work.kind == WorkNode::Kind::kWork) work.shareable = next++;
  return next;
}

SplitWork::SplitWork(const ShareableChain& chain, size_t level)
    : node(chain.levels[level].node),
      source(chain.source),
      stage(chain.levels[level].stage),
      cells(OpOf(*node, chain.levels[level].parts - 1).output()) {
  for (size_t i = 0; i <= level; ++i) {
    // Of fused stages the last one is counted.
    const bool is_last_of_node = i == level || chain.levels[i + 1].node != chain.levels[i].node;
    if (is_last_of_node) stages.push_back(chain.levels[i].stage);
  }
  const size_t parts = chain.levels[level].parts;
  const size_t all = node->parts.size();
  if (parts == all) {
    prefix.push_back(node->op.get());
    return;
  }
  const auto join = [this](size_t begin, size_t end, std::vector<const WorkOp*>* ops) {
    for (size_t i = begin; i < end; ++i) {
      const WorkOp& op = OpOf(*node, i);
      std::unique_ptr<WorkOp> fused = i > begin ? ops->back()->FusedWith(op) : nullptr;
      if (fused == nullptr) {
        ops->push_back(&op);
      } else {
        ops->back() = fused.get();
        fused_.push_back(std::move(fused));
      }
    }
  };
  join(0, parts, &prefix);
  join(parts, all, &rest);
}

}  // namespace penstock
