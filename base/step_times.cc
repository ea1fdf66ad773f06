#include "base/step_times.h"

namespace penstock {
namespace {

constinit thread_local StepTimes* current = nullptr;

}  // namespace

StepTimes* StepTimes::OfThisThread() { return current; }

StepTimes::Scope::Scope(StepTimes* times) : outer_(current) { current = times; }

StepTimes::Scope::~Scope() { current = outer_; }

}  // namespace penstock
