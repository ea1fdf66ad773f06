#include "tests/sim/simulated_sink.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::test {
namespace {

constexpr size_t kVariableBytes = 1 << 20;
constexpr size_t kSpareBytes = 64;
constexpr char kUnwritten = '\x5a';

}  // namespace

SimulatedSink::SimulatedSink(const Plan& plan, int slots, int consumers, uint64_t first_step,
                             uint64_t end_step, const RunResult* expected)
    : tensors_(plan.tensors()),
      end_step_(end_step),
      expected_(expected),
      slots_(slots),
      consumers_(consumers),
      next_claim_(first_step),
      next_step_(first_step) {
  for (const BatchTensor& tensor : tensors_) variable_ = variable_ || !tensor.fixed();
  for (int slot = 0; slot < slots; ++slot) {
    for (const BatchTensor& tensor : tensors_)
      slots_[slot].tensors.emplace_back(tensor.fixed() ? *NumBytes(tensor.type) + kSpareBytes : 0,
                                        kUnwritten);
    if (variable_) slots_[slot].variable.reset(new uint8_t[kVariableBytes]);
    free_.push_back(slot);
  }
  for (Consumer& consumer : consumers_) consumer.next_step = first_step;
}

void SimulatedSink::Complain(const std::string& what) {
  if (complaint_.empty()) complaint_ = what;
}

bool SimulatedSink::TryClaim(ClaimedSlot* claimed) {
  if (finished_) Complain("a slot was claimed behind the end");
  if (!has_free_slot()) return false;
  ++next_claim_;
  claimed->slot = free_.front();
  free_.pop_front();
  Slot& slot = slots_[claimed->slot];
  claimed->tensors.clear();
  for (std::string& bytes : slot.tensors)
    claimed->tensors.push_back(bytes.empty() ? nullptr : reinterpret_cast<uint8_t*>(bytes.data()));
  claimed->variable = slot.variable.get();
  claimed->variable_bytes = variable_ ? kVariableBytes : 0;
  return true;
}

Batch SimulatedSink::Copy(int number) const {
  const Slot& slot = slots_[number];
  Batch batch;
  batch.info = slot.info;
  size_t num_variable = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    std::string& bytes = batch.tensors.emplace_back();
    if (tensors_[i].fixed()) {
      const size_t full = slot.tensors[i].size() - kSpareBytes;
      bytes = slot.tensors[i].substr(
          0, tensors_[i].batched ? full / tensors_[i].type.shape[0] * slot.info.rows : full);
      continue;
    }
    for (const TensorExtent::Part& part : slot.info.extents[num_variable].parts)
      bytes.append(reinterpret_cast<const char*>(slot.variable.get()) + part.offset, part.bytes);
    ++num_variable;
  }
  return batch;
}

void SimulatedSink::CheckBytes(int slot, const char* when) {
  if (expected_ == nullptr) return;
  const StepInfo& info = slots_[slot].info;
  if (info.step >= expected_->batches.size()) {
    Complain(absl::StrCat("step ", info.step, ": ", when, ": expected no more than ",
                          expected_->batches.size(), " steps"));
    return;
  }
  const Batch& expected = expected_->batches[info.step];
  const Batch found = Copy(slot);
  const auto wrong = [&](const std::string& what) {
    Complain(absl::StrCat("step ", info.step, ": ", when, ": ", what));
  };
  if (found.info.rows != expected.info.rows)
    return wrong(absl::StrCat("expected ", expected.info.rows, " rows, found ", found.info.rows));
  if (found.info.epoch != expected.info.epoch)
    return wrong(absl::StrCat("expected epoch ", expected.info.epoch, ", found ", info.epoch));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (found.tensors[i] != expected.tensors[i])
      return wrong(absl::StrCat("tensor ", i, " has other bytes"));
  }
  if (found.info.cursor != expected.info.cursor) return wrong("its cursor differs");
}

void SimulatedSink::Publish(const ClaimedSlot& claimed, const StepInfo& info) {
  if (finished_) Complain(absl::StrCat("step ", info.step, " was published behind the end"));
  if (info.step != next_step_)
    Complain(absl::StrCat("step ", info.step, " was published, expected ", next_step_));
  next_step_ = info.step + 1;
  slots_[claimed.slot].info = info;
  CheckBytes(claimed.slot, "published");
  if (expected_ == nullptr) batches_.push_back(Copy(claimed.slot));
  // Held by the ring itself, so that one who comes back finds the oldest step that is there.
  published_.push_back(claimed.slot);
  for (Consumer& consumer : consumers_) {
    if (!consumer.alive) continue;
    consumer.ahead.push_back(claimed.slot);
    ++slots_[claimed.slot].holders;
  }
}

void SimulatedSink::Finish(const absl::Status& status) {
  if (finished_) Complain("the end came twice");
  finished_ = true;
  status_ = status;
}

void SimulatedSink::GiveBack(int number) {
  Slot& slot = slots_[number];
  CheckBytes(number, "given back");
  if (--slot.holders > 0) return;
  published_.erase(std::find(published_.begin(), published_.end(), number));
  for (std::string& bytes : slot.tensors) std::fill(bytes.begin(), bytes.end(), kUnwritten);
  free_.push_back(number);
}

void SimulatedSink::Die(Consumer& consumer) {
  consumer.alive = false;
  for (const int slot : std::exchange(consumer.held, {})) GiveBack(slot);
  for (const int slot : std::exchange(consumer.ahead, {})) GiveBack(slot);
}

void SimulatedSink::ComeBack(Consumer& consumer) {
  consumer.alive = true;
  // It begins at the oldest step behind which none has been given back by all others.
  consumer.next_step = next_step_;
  for (auto slot = published_.rbegin(); slot != published_.rend(); ++slot) {
    if (slots_[*slot].info.step + 1 != consumer.next_step) break;
    consumer.next_step = slots_[*slot].info.step;
    consumer.ahead.push_front(*slot);
    ++slots_[*slot].holders;
  }
}

bool SimulatedSink::Act(Dice& dice) {
  Consumer& consumer = consumers_[dice.Below(consumers_.size())];
  if (!consumer.alive) {
    if (dice.OneIn(4)) ComeBack(consumer);
    return true;
  }
  if (dice.OneIn(60)) {
    Die(consumer);
    return true;
  }
  if (!consumer.ahead.empty() && dice.OneIn(2)) {
    const int slot = consumer.ahead.front();
    consumer.ahead.pop_front();
    consumer.held.push_back(slot);
    if (slots_[slot].info.step != consumer.next_step)
      Complain(absl::StrCat("a consumer got step ", slots_[slot].info.step, ", expected ",
                            consumer.next_step));
    consumer.next_step = slots_[slot].info.step + 1;
    return true;
  }
  if (consumer.held.empty()) return !consumer.ahead.empty();
  const size_t which = dice.Below(consumer.held.size());
  const int slot = consumer.held[which];
  consumer.held.erase(consumer.held.begin() + which);
  GiveBack(slot);
  return true;
}

bool SimulatedSink::Drain() {
  bool any = false;
  for (Consumer& consumer : consumers_) {
    if (!consumer.alive) {
      any = true;
      ComeBack(consumer);
    }
    any = any || !consumer.held.empty() || !consumer.ahead.empty();
    for (const int slot : std::exchange(consumer.held, {})) GiveBack(slot);
    for (const int slot : std::exchange(consumer.ahead, {})) GiveBack(slot);
    consumer.next_step = next_step_;
  }
  return any;
}

}  // namespace penstock::test
