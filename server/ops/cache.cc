#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "base/memory_charge.h"
#include "server/engine/keep/keep_in_file.h"
#include "server/engine/keep/kept_gauge.h"
#include "server/engine/keep/kept_order.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// A quarter of what the daemon may use: of its control group's memory or the machine's.
uint64_t DefaultBytes() {
  const MemoryAccount* const account = MemoryAccount::OfThisThread();
  return account == nullptr ? UINT64_MAX : account->memory_bytes() / 4;
}

// What a list takes from the account for one element more.
uint64_t RoomForOneMore(const RecordList& list) {
  if (list.size() < list.capacity()) return 0;
  return std::max<uint64_t>(list.capacity(), 1) * sizeof(RecordRef);
}

// Keeps elements' cells by their ordinals, whichever come first, as long as there is room; what is
// kept stays. A run of elements begins where a cursor has led, which may be anywhere, or where
// others were left out.
class MemoryKept final : public KeptElements {
 public:
  // `bytes_max`: absent: DefaultBytes().
  MemoryKept(FrontContext& context, std::optional<uint64_t> bytes_max, int stage)
      : context_(context),
        account_(MemoryAccount::OfThisThread()),
        bytes_max_(bytes_max ? *bytes_max : DefaultBytes()),
        stage_(stage) {}
  ~MemoryKept() override { GiveBack(); }

  bool Has(uint64_t ordinal) const override { return Find(ordinal) != nullptr; }

  Pulled Deal(uint64_t ordinal, RecordList& out) override {
    const RecordRef* const element = Find(ordinal);
    context_.store.Share({element, 1});
    out.push_back(*element);
    if (context_.gauges != nullptr) context_.gauges[stage_].Hit();
    return Pulled::kSome;
  }

  void Keep(uint64_t ordinal, const RecordRef& element) override {
    auto run = RunFrom(ordinal);
    const bool begins = run == runs_.end() || run->first + run->second.size() != ordinal;
    const uint64_t bytes =
        element.length + sizeof(RecordRef) + (begins && !runs_.empty() ? kRunBytes : 0);
    // What is kept leaves room for what is computed, also where a list of references doubles.
    const uint64_t taken =
        element.length + (begins ? kRunBytes + sizeof(RecordRef) : RoomForOneMore(run->second));
    const bool fits =
        bytes_ + bytes <= bytes_max_ && (account_ == nullptr || account_->HasRoomToKeep(taken));
    if (fits) {
      bytes_ += bytes;
      ++elements_;
      if (begins) {
        charge_.Add(kRunBytes);
        run = runs_.emplace(ordinal, RecordList()).first;
      }
      charge_.MakeRoom(run->second, 1);
      context_.store.Share({&element, 1});
      run->second.push_back(element);
    }
    is_full_ = is_full_ || !fits;
    Show(is_full_ ? KeptState::kFull : KeptState::kFilling);
  }

  Pulled End(uint64_t length) override {
    if (elements_ == length) Show(KeptState::kWhole);
    return Pulled::kEnd;
  }

  void GiveBack() override {
    for (const auto& [first, run] : runs_) context_.store.Release(run);
    runs_.clear();
    charge_.Clear();
    bytes_ = elements_ = 0;
  }

 private:
  // What a further run costs beside its elements.
  static constexpr uint64_t kRunBytes = 128;

  // The run that begins here or nearest in front of it: the one that an element which is not kept
  // may belong behind.
  std::map<uint64_t, RecordList>::iterator RunFrom(uint64_t ordinal) {
    const auto behind = runs_.upper_bound(ordinal);
    return behind == runs_.begin() ? runs_.end() : std::prev(behind);
  }

  // Null when it is not kept.
  const RecordRef* Find(uint64_t ordinal) const {
    const auto behind = runs_.upper_bound(ordinal);
    if (behind == runs_.begin()) return nullptr;
    const auto& [first, run] = *std::prev(behind);
    return ordinal - first < run.size() ? &run[ordinal - first] : nullptr;
  }

  void Show(KeptState state) const {
    if (context_.gauges != nullptr) context_.gauges[stage_].Set(state, elements_, bytes_);
  }

  FrontContext& context_;
  const MemoryAccount* const account_;  // the pipeline's; may be null
  const uint64_t bytes_max_;
  const int stage_;
  MemoryCharge charge_;                  // of the runs and their references
  std::map<uint64_t, RecordList> runs_;  // by their first ordinals; none reaches into the next
  uint64_t bytes_ = 0;
  uint64_t elements_ = 0;
  bool is_full_ = false;
};

const OpRegistration<v1::Cache> kCache(
    "cache",
    {.gives = Given::kOneEach,
     .folder = v1::Cache::kFilenameFieldNumber,
     .without_effect = {v1::Cache::kMaxBytesFieldNumber}},
    [](const v1::Cache& options, PlanBuilder& plan) -> absl::Status {
      if (options.max_bytes() < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("max_bytes: expected at least 0, found ", options.max_bytes()));
      }
      if (!options.filename().empty()) {
        return KeepInFile(
            {.folder = options.filename(),
             .bytes_max =
                 options.has_max_bytes() ? static_cast<uint64_t>(options.max_bytes()) : UINT64_MAX},
            plan);
      }
      if (absl::Status status = BeginKeeping(plan); !status.ok()) return status;
      std::optional<uint64_t> bytes_max;
      if (options.has_max_bytes()) bytes_max = static_cast<uint64_t>(options.max_bytes());
      plan.AddOrder(
          [bytes_max, stage = plan.stage_index()](FrontContext& context, OrderInputs inputs) {
            return MakeKeptOrder(context, std::make_unique<MemoryKept>(context, bytes_max, stage),
                                 std::move(inputs[0]));
          },
          CursorClass::kReplayOrder);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
