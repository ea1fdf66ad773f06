#include "server/engine/order/grouped_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/memory_charge.h"
#include "server/engine/order/replayed_order.h"
#include "server/engine/order/window_dataset.h"
#include "server/engine/read/element_cells.h"

namespace penstock {
namespace {

constexpr uint64_t kPulledAtOnce = 64;
// What a group takes beside its elements, about.
constexpr uint64_t kGroupBytes = 128;

// Windows, one after another.
class Groups {
 public:
  Groups(FrontContext& context, Grouping grouping, std::unique_ptr<OrderOp> input)
      : context_(context), grouping_(std::move(grouping)), input_(std::move(input)) {}

  // The references of the next window.
  Pulled Next(RecordList* window) {
    if (!status_.ok()) return Pulled::kFailed;
    while (true) {
      for (; next_ < incoming_.size(); ++next_) {
        if (const std::optional<int64_t> full = Add(incoming_[next_])) {
          ++next_;
          Hand(groups_.find(*full), window);
          return Pulled::kSome;
        }
        if (!status_.ok()) {
          ++next_;  // its group has it
          return Pulled::kFailed;
        }
      }
      incoming_.clear();
      next_ = 0;
      if (result_ == Pulled::kFailed) {
        status_ = input_->status();
        return Pulled::kFailed;
      }
      if (result_ == Pulled::kEnd) return NextOfRest(window);
      uint64_t pulled = 0;
      const Pulled result = input_->Pull(kPulledAtOnce, incoming_, &pulled);
      if (result == Pulled::kBlocked && incoming_.empty()) return result;
      if (result != Pulled::kBlocked) result_ = result;
    }
  }

  void Restart(uint64_t epoch) {
    DropAll();
    context_.store.Release(absl::MakeConstSpan(incoming_).subspan(next_));
    incoming_.clear();
    next_ = 0;
    result_ = Pulled::kSome;
    status_ = absl::OkStatus();
    input_->Restart(epoch);
  }

  uint32_t width() const { return input_->width(); }
  const absl::Status& status() const { return status_; }

 private:
  struct Group {
    RecordList elements;
    uint64_t size = 0;  // when it is full
  };

  // The key of the group that is full by that element.
  std::optional<int64_t> Add(const RecordRef& element) {
    const int64_t key = grouping_.key_of(ElementCells::First(element));
    auto found = groups_.find(key);
    if (found == groups_.end()) {
      charge_.Add(kGroupBytes);
      found = groups_.try_emplace(key).first;
    }
    Group& group = found->second;
    charge_.MakeRoom(group.elements, 1);
    group.elements.push_back(element);
    if (group.size == 0) {
      const absl::StatusOr<uint64_t> size = grouping_.window_size(key);
      status_ = size.status();
      group.size = size.value_or(UINT64_MAX);
    }
    return group.elements.size() == group.size ? std::optional(key) : std::nullopt;
  }

  void Hand(std::map<int64_t, Group>::iterator group, RecordList* window) {
    charge_.Remove(kGroupBytes + group->second.elements.capacity() * sizeof(RecordRef));
    *window = std::move(group->second.elements);
    groups_.erase(group);
  }

  void DropAll() {
    for (auto& [key, group] : groups_) context_.store.Release(group.elements);
    groups_.clear();
    charge_.Clear();
  }

  Pulled NextOfRest(RecordList* window) {
    if (grouping_.drop_remainder) {
      DropAll();
    }
    if (groups_.empty()) return Pulled::kEnd;
    Hand(groups_.begin(), window);
    return Pulled::kSome;
  }

  FrontContext& context_;
  const Grouping grouping_;
  const std::unique_ptr<OrderOp> input_;  // whose elements are in cells: of one reference
  MemoryCharge charge_;                   // of the groups
  std::map<int64_t, Group> groups_;
  RecordList incoming_;
  size_t next_ = 0;                // of incoming_
  Pulled result_ = Pulled::kSome;  // what the input came to
  absl::Status status_;
};

// What both kinds have in common.
class GroupedOrder : public ReplayedOrder {
 public:
  GroupedOrder(FrontContext& context, Grouping grouping, std::unique_ptr<OrderOp> input)
      : ReplayedOrder(context), groups_(context, std::move(grouping), std::move(input)) {}
  std::optional<uint64_t> Count() final { return std::nullopt; }

 protected:
  void Begin(uint64_t epoch) override { groups_.Restart(epoch); }

  Groups groups_;
};

class BatchesOp final : public GroupedOrder {
 public:
  using GroupedOrder::GroupedOrder;
  uint32_t width() const override { return groups_.width(); }
  absl::Status status() const override { return groups_.status(); }

 protected:
  Pulled Take(uint64_t count, RecordList& out, uint64_t* taken) override {
    RecordList window;
    for (; *taken < count; ++*taken) {
      if (const Pulled result = groups_.Next(&window); result != Pulled::kSome) return result;
      out.insert(out.end(), window.begin(), window.end());
    }
    return Pulled::kSome;
  }
};

class DatasetsOp final : public GroupedOrder {
 public:
  DatasetsOp(FrontContext& context, const OrderNode& nested, Grouping grouping,
             std::unique_ptr<OrderOp> input)
      : GroupedOrder(context, std::move(grouping), std::move(input)), dataset_(context, nested) {}

  uint32_t width() const override { return dataset_.width(); }
  absl::Status status() const override {
    return groups_.status().ok() ? dataset_.status() : groups_.status();
  }

 protected:
  Pulled Take(uint64_t count, RecordList& out, uint64_t* taken) override {
    while (*taken < count) {
      if (context().interrupted()) return Pulled::kBlocked;
      if (!dataset_.is_open()) {
        RecordList window;
        if (const Pulled result = groups_.Next(&window); result != Pulled::kSome) return result;
        dataset_.Open(std::move(window), epoch(), window_++, scope_pass_);
      }
      const Pulled result = dataset_.Pull(count, out, taken);
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
      if (result == Pulled::kEnd) dataset_.Close();
    }
    return Pulled::kSome;
  }

  void Begin(uint64_t epoch) override {
    dataset_.Close();
    window_ = 0;
    scope_pass_ = context().scope_pass;
    GroupedOrder::Begin(epoch);
  }

 private:
  WindowDataset dataset_;
  uint64_t window_ = 0;      // the next one's number in this pass
  uint64_t scope_pass_ = 0;  // FrontContext::scope_pass of this pass
};

}  // namespace

std::unique_ptr<OrderOp> BatchesOfGroups(FrontContext& context, Grouping grouping,
                                         std::unique_ptr<OrderOp> input) {
  return std::make_unique<BatchesOp>(context, std::move(grouping), std::move(input));
}

std::unique_ptr<OrderOp> DatasetsOfGroups(FrontContext& context, const OrderNode& nested,
                                          Grouping grouping, std::unique_ptr<OrderOp> input) {
  return std::make_unique<DatasetsOp>(context, nested, std::move(grouping), std::move(input));
}

}  // namespace penstock
