#include "base/stop_flag.h"

namespace penstock {

StopFlag::Scope::Scope(const std::atomic<bool>* stop) : outer_(stop_flag_internal::current) {
  stop_flag_internal::current = stop;
}
StopFlag::Scope::~Scope() { stop_flag_internal::current = outer_; }

const std::atomic<bool>* StopFlag::OfThisThread() { return stop_flag_internal::current; }

}  // namespace penstock
