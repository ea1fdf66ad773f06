#include "tests/sim/clocked_pipeline.h"

#include <algorithm>
#include <limits>

namespace penstock::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// As the sessions' timer ticks.
constexpr double kLookNs = 25e6;

}  // namespace

ClockedPipeline::ClockedPipeline(const ClockedOptions& options)
    : options_(options),
      dice_(options.seed),
      busy_ns_(options.stages.size()),
      helpers_(static_cast<size_t>(options.helpers), Helper{kNever}) {
  SetWorkers(options.workers);
}

void ClockedPipeline::SetWorkers(int workers) {
  options_.workers = workers;
  // Those that are too many end what they are doing; Deal() gives them nothing more.
  while (static_cast<int>(ends_ns_.size()) < workers) {
    ends_ns_.push_back(kNever);
    working_.push_back(0);
  }
}

double ClockedPipeline::busy_s() const {
  double sum = 0;
  for (const double ns : busy_ns_) sum += ns;
  return sum * 1e-9;
}

bool ClockedPipeline::HasSlots(uint64_t slots) const {
  // A slot is in use from its step's beginning until the trainer has given it back.
  const uint64_t in_use = first_ + steps_.size() - taken_ + (training_ ? 1 : 0);
  return in_use + slots <= static_cast<uint64_t>(options_.slots);
}

double ClockedPipeline::Factor() {
  return 1 - options_.spread +
         2 * options_.spread * static_cast<double>(dice_.Below(1'000'000)) / 1e6;
}

void ClockedPipeline::Lend() {
  for (Helper& helper : helpers_) {
    if (helper.ends_ns != kNever || !HasSlots(2)) continue;
    steps_.push_back({.begun = options_.blocks});
    helper.step = first_ + steps_.size() - 1;
    helper.ends_ns = now_ns_ + options_.helper_us * 1e3 * Factor();
  }
}

void ClockedPipeline::Deal() {
  Lend();
  for (size_t worker = 0; worker < ends_ns_.size(); ++worker) {
    if (ends_ns_[worker] != kNever || static_cast<int>(worker) >= options_.workers) continue;
    size_t at = 0;
    while (at < steps_.size() && steps_[at].begun == options_.blocks) ++at;
    if (at == steps_.size()) {
      if (!HasSlots(1)) return;
      steps_.emplace_back();
    }
    ++steps_[at].begun;
    working_[worker] = first_ + at;
    const bool is_heavy = options_.heavy_every > 0 &&
                          (first_ + at) % static_cast<uint64_t>(options_.heavy_every) == 0;
    const double weight = is_heavy ? options_.heavy_factor : 1;
    double cost_ns = 0;
    for (size_t stage = 0; stage < options_.stages.size(); ++stage) {
      const double ns = options_.stages[stage].block_us * 1e3 * Factor() * weight;
      busy_ns_[stage] += ns;
      cost_ns += ns;
    }
    ends_ns_[worker] = now_ns_ + cost_ns;
  }
}

void ClockedPipeline::GoTo(double time_ns) {
  const double passed = time_ns - now_ns_;
  const bool idle = std::any_of(ends_ns_.begin(), ends_ns_.begin() + options_.workers,
                                [](double end) { return end == kNever; });
  // Files are always ready here, so that a worker without a block waits for a slot.
  if (idle) slot_wait_ns_ += passed;
  if (!training_) trainer_waited_ns_ += passed;
  now_ns_ = time_ns;
}

void ClockedPipeline::RunFor(double seconds) {
  const double until_ns = now_ns_ + seconds * 1e9;
  while (true) {
    if (!training_ && taken_ < published_) {
      training_ = true;
      ++taken_;
      trained_ns_ = now_ns_ + options_.trainer_us * 1e3;
    }
    Deal();
    double next = std::min(until_ns, next_look_ns_);
    for (const double end : ends_ns_) next = std::min(next, end);
    for (const Helper& helper : helpers_) next = std::min(next, helper.ends_ns);
    if (training_) next = std::min(next, trained_ns_);
    GoTo(next);
    if (now_ns_ >= next_look_ns_) {
      next_look_ns_ += kLookNs;
      ++looks_;
      if (!training_) ++waiting_looks_;
    }
    if (training_ && now_ns_ >= trained_ns_) training_ = false;
    for (size_t worker = 0; worker < ends_ns_.size(); ++worker) {
      if (ends_ns_[worker] > now_ns_) continue;
      ends_ns_[worker] = kNever;
      ++steps_[working_[worker] - first_].done;
    }
    for (Helper& helper : helpers_) {
      if (helper.ends_ns > now_ns_) continue;
      helper.ends_ns = kNever;
      ++helper.steps;
      steps_[helper.step - first_].done = options_.blocks;
    }
    while (!steps_.empty() && steps_.front().done == options_.blocks) {
      steps_.pop_front();
      ++first_;
      ++published_;
    }
    if (now_ns_ >= until_ns) return;
  }
}

Look ClockedPipeline::TakeLook() const {
  Look look;
  look.at_ns = static_cast<int64_t>(now_ns_);
  look.stats.set_name("clocked");
  look.stats.set_state(v1::PIPELINE_STATE_RUNNING);
  look.stats.set_workers(static_cast<uint32_t>(options_.workers));
  look.stats.set_slots(static_cast<uint32_t>(options_.slots));
  look.stats.set_steps(published_);
  look.stats.set_rows(64 * published_);
  look.stats.set_slot_wait_ns(static_cast<uint64_t>(slot_wait_ns_));
  look.stats.set_running_ns(static_cast<uint64_t>(now_ns_));
  look.stats.add_consumers()->set_id(1);
  for (size_t i = 0; i < busy_ns_.size(); ++i) {
    v1::StageStats* stage = look.stats.add_stages();
    stage->set_name(options_.stages[i].name);
    stage->set_busy_ns(static_cast<uint64_t>(busy_ns_[i]));
  }
  for (size_t i = 0; i < helpers_.size(); ++i) {
    v1::HelperStats* helper = look.stats.add_helpers();
    helper->set_address("10.0.0." + std::to_string(i + 1) + ":9466");
    helper->set_state("ready");
    helper->set_steps(helpers_[i].steps);
    helper->set_steps_away(helpers_[i].ends_ns == kNever ? 0 : 1);
  }
  look.waits.push_back({1, looks_, waiting_looks_});
  return look;
}

}  // namespace penstock::test
