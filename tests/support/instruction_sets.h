// Runs a test once with every instruction set that was compiled and that this machine has.
//
// Threads:  one; the choice holds for the whole process until the call returns.
#pragma once

#include <functional>

namespace penstock::testing {

// Calls `test` for each set with its name, and fails the test case if the set is not the one that
// dispatch then chooses.
void ForEachInstructionSet(const std::function<void(const char* name)>& test);

}  // namespace penstock::testing
