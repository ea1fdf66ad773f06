// What a section makes of its rows is charged: the references of the elements, beside their cells.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/memory_account.h"
#include "server/engine/section/section.h"
#include "tests/support/catch.h"
#include "tests/support/lone_front.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

class OneElement final : public MadeUpInput {
 public:
  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count && next_ == 0; ++*pulled, ++next_) out.emplace_back();
    return *pulled == count ? Pulled::kSome : Pulled::kEnd;
  }
  std::optional<uint64_t> Count() override { return 1; }
};

TEST_CASE("fault 35: the elements of a section's task are charged until the front has taken them") {
  struct Case {
    std::string stages;
    bool in_blocks;
  };
  const std::string front_stages =
      "range { stop: 1 } | map { out: 'v = arange(100000) + value' } | unbatch {}";
  for (const auto& [stages, in_blocks] :
       {Case{front_stages, true},
        Case{front_stages + " | shuffle { buffer_size: 9 seed: 1 }", false}}) {
    INFO(stages);
    const auto plan = PlanText(Stages(stages));
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    const auto& made = static_cast<const PlanImpl&>(**plan);
    const OrderNode* node = &made.order();
    if (!in_blocks) node = node->inputs[0].get();
    MemoryAccount::Options options;
    options.name = "pipeline p";
    const auto account = MemoryAccount::Create(std::move(options));
    {
      const MemoryAccount::Scope charged(account.get());
      LoneFront front(made.manifest());
      OrderInputs inputs;
      inputs.push_back(std::make_unique<OneElement>());
      const auto op = node->make(front.context, std::move(inputs));
      RecordList out;
      uint64_t pulled = 0;
      REQUIRE(op->Pull(1, out, &pulled) == Pulled::kBlocked);
      SectionTask* const task = front.sections.Pop();
      REQUIRE(task != nullptr);
      CHECK(task->section->makes_blocks == in_blocks);
      {
        SectionRunner runner(front.store, front.files, front.stages);
        runner.Run(task);
      }
      INFO(task->error.ToString());
      REQUIRE(task->elements.size() == 100000);
      // Of whatever else is charged here, nothing goes with the references.
      const uint64_t with_references = account->taken();
      task->charge.Clear();
      CHECK(with_references - account->taken() == task->elements.capacity() * sizeof(RecordRef));
      REQUIRE(op->Pull(1, out, &pulled) == Pulled::kSome);
      front.store.Release(out);
    }
    CHECK(account->taken() == 0);
  }
}

}  // namespace
}  // namespace penstock::test
