// Waiting without the GIL, and calls into Python from there.
//
// A thread that asks for the GIL of an interpreter that is ending never gets it: Python ends the
// thread there and then, by unwinding it, which ends the whole process with SIGABRT at the first
// destructor of C++. Such a thread, a daemon thread in a loader's `next` as a rule, stands still
// here until the process has ended, which is what Python itself does from 3.14 on.
//
// Threads:  any; WithoutGil by a thread that holds the GIL, WithGil by one that may hold it.
// Cost:     Python's own.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace penstock_python {

// Calls what asks for the GIL; returns only with it.
template <typename Ask>
auto AskForGil(const Ask& ask) -> decltype(ask()) {
  try {
    return ask();
  } catch (abi::__forced_unwind&) {
    while (true) pause();
  }
}

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    AskForGil([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* const state_;
};

class WithGil {
 public:
  WithGil() : state_(AskForGil([] { return PyGILState_Ensure(); })) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  const PyGILState_STATE state_;
};

}  // namespace penstock_python
