// Steps that are lent: in their order, and taken back where everything waits for them (fault 48).
#include "server/engine/run/lent_steps.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/contract_files.h"
#include "tests/support/catch.h"
#include "tests/support/helped_runs.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

// Takes what it is lent, and makes nothing of it: without end, or until it is taken back.
class Keeper final : public StepLender {
 public:
  struct Kept {
    std::mutex mutex;
    std::vector<std::pair<uint64_t, Completion>> steps;  // under mutex, as those below
    std::vector<uint64_t> lent;
    uint64_t taken_back = 0;

    void End(uint64_t step) {
      Completion done;
      {
        std::lock_guard<std::mutex> lock(mutex);
        const auto found = std::find_if(steps.begin(), steps.end(),
                                        [step](const auto& one) { return one.first == step; });
        if (found == steps.end()) return;
        done = std::move(found->second);
        steps.erase(found);
        ++taken_back;
      }
      done.End(absl::UnavailableError("taken back"));
    }
  };

  Keeper(std::shared_ptr<Kept> kept, size_t room) : kept_(std::move(kept)), room_(room) {}

  bool HasRoom() const override {
    std::lock_guard<std::mutex> lock(kept_->mutex);
    return kept_->steps.size() < room_;
  }
  std::shared_ptr<Place> Reserve() override {
    return HasRoom() ? std::make_shared<Place>() : nullptr;
  }
  void GiveUp(Place&) override {}
  void Lend(Place&, StepInfo* info, const ClaimedSlot&, Completion done) override {
    const uint64_t step = info->step;
    done.OnCancel([kept = kept_, step] { kept->End(step); });
    std::lock_guard<std::mutex> lock(kept_->mutex);
    kept_->lent.push_back(step);
    kept_->steps.emplace_back(step, std::move(done));
  }
  void TakeBack(uint64_t step) override { kept_->End(step); }
  void Passed(uint64_t, const std::string&, uint64_t) override {}
  std::vector<HelperStats> Helpers() const override { return {}; }

 private:
  const std::shared_ptr<Kept> kept_;
  const size_t room_;
};

class Keepers final : public StepLenders {
 public:
  Keepers(std::shared_ptr<Keeper::Kept> kept, size_t room) : kept_(std::move(kept)), room_(room) {}
  std::unique_ptr<StepLender> Make(std::shared_ptr<const Plan>, const LentStream&) override {
    return std::make_unique<Keeper>(kept_, room_);
  }

 private:
  const std::shared_ptr<Keeper::Kept> kept_;
  const size_t room_;
};

TEST_CASE(
    "a lent step at which everything waits is taken back, and the bytes are those of a run alone") {
  const ContractFiles files;
  const auto plan = PlanText(files.Spec(
      "$RANGE | shuffle { buffer_size: 30 seed: 3 } | map { out: 'a = value' out: 'b = "
      "sum(random_uniform([2000], seed=1)) + value' } | batch { batch_size: 4 } | repeat { count: "
      "4 }"));
  REQUIRE(plan.ok());
  const RunResult alone = RunPlan(*plan);
  REQUIRE(alone.status.ok());
  REQUIRE(alone.batches.size() > 20);
  for (const int workers : {1, 3}) {
    for (const int slots : {2, 3, 8}) {
      for (const size_t room : {size_t{1}, size_t{2}, size_t{4}}) {
        INFO(workers << " workers, " << slots << " slots, room for " << room);
        const auto kept = std::make_shared<Keeper::Kept>();
        const HelpedRuns helpers(std::make_shared<Keepers>(kept, room), 0);
        const RunResult helped =
            RunPlan(*plan, {.workers = workers, .slots = slots, .max_steps = 1000});
        REQUIRE(helped.status.ok());
        REQUIRE(helped.batches.size() == alone.batches.size());
        for (size_t i = 0; i < alone.batches.size(); ++i)
          CHECK(helped.batches[i] == alone.batches[i]);
        CHECK(!kept->lent.empty());
        CHECK(kept->taken_back == kept->lent.size());
        CHECK(std::is_sorted(kept->lent.begin(), kept->lent.end()));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::test
