#include "server/python/iterator_states.h"

#include <utility>

namespace penstock::python {

void IteratorStates::Add(uint32_t pass, State state) {
  if (state.bytes.size() > kMaxStateBytes) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  states_.push_back({pass, std::move(state)});
  if (states_.size() > kMaxStates) states_.pop_front();
}

IteratorStates::State IteratorStates::Find(uint32_t pass, uint64_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const State* found = nullptr;
  for (const Kept& kept : states_) {
    const State& state = kept.state;
    if (kept.pass == pass && state.number <= number &&
        (found == nullptr || found->number <= state.number))
      found = &state;
  }
  return found != nullptr ? *found : State{};
}

}  // namespace penstock::python
