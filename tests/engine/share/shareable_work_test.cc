// What of a plan's work others may share: nothing that is computed elsewhere, whose code may be
// another user's.
#include "server/engine/share/shareable_work.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/order/away_work_op.h"
#include "server/engine/plan/plan_impl.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

// What another op does, and draws nothing.
class OpElsewhere final : public AwayWorkOp {
 public:
  explicit OpElsewhere(std::unique_ptr<WorkOp> op) : op_(std::move(op)) {}

  const Signature& output() const override { return op_->output(); }
  const char* doing() const override { return "computing rows elsewhere"; }
  std::string place() const override { return "test"; }
  void Begin(AwayRows* rows, Completion end) const override {
    rows->failure = op_->Run(rows->rows, rows->in, rows->out, *rows->arena);
    end.End();
  }

 private:
  const std::unique_ptr<WorkOp> op_;
};

void SendAway(WorkNode& node, int stage) {
  for (std::unique_ptr<WorkNode>& input : node.inputs) SendAway(*input, stage);
  if (node.kind == WorkNode::Kind::kWork && node.stages.back() == stage)
    node.op = std::make_unique<OpElsewhere>(std::move(node.op));
}

// How many stages of each chain may be shared where the rows of stage `away` are made elsewhere;
// -1: of none.
std::vector<size_t> Shareable(const std::string& text, int away) {
  absl::StatusOr<std::shared_ptr<const Plan>> made = PlanText(text);
  INFO(made.status().ToString());
  REQUIRE(made.ok());
  const auto& plan = static_cast<const PlanImpl&>(**made);
  // No op of the registry is like that: the plan is nobody else's yet.
  SendAway(const_cast<WorkNode&>(plan.work()), away);
  std::vector<size_t> found;
  for (const ShareableChain& chain : FindShareable(PlanImpl::WorkOf(*made)))
    found.push_back(chain.levels.size());
  return found;
}

TEST_CASE("Nothing that is computed elsewhere is shared, nor what stands behind it") {
  const ScratchFolder folder;
  WriteShard(folder / "a", 0, 10);
  const std::string text =
      absl::StrCat("stage { tfrecord { files: '", folder / "a",
                   "' } } stage { parse_example { feature { key: 'n' int64 {} } } } "
                   "stage { map { out: 'n = n * 3' } } stage { batch { batch_size: 5 } }");
  const std::vector<size_t> native = Shareable(text, -1);
  REQUIRE(native.size() == 1);
  CHECK(native[0] == 2);
  CHECK(Shareable(text, 1).empty());
}

}  // namespace
}  // namespace penstock::test
