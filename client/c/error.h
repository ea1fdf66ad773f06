// The calling thread's last error, which penstock_last_error shows, and the wall that exceptions do
// not cross.
//
// Threads:  each has its own.
// Owns:     the text.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "ring/status.h"

namespace penstock_client {

std::string& LastError();

// Keeps the message, as far as there is memory for it, and returns the code.
inline int Fail(const penstock::ring::Status& status) noexcept {
  try {
    LastError() = status.message;
  } catch (const std::bad_alloc&) {
    LastError().assign("out of memory");  // no longer than a string's own room
  }
  return static_cast<int>(status.code);
}

// What a call of the C interface does: an exception ends it with a code.
template <typename Call>
int Guarded(const Call& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  } catch (...) {
    LastError().assign("internal error");
    return static_cast<int>(penstock::ring::Code::kInternal);
  }
  LastError().assign("out of memory");
  return static_cast<int>(penstock::ring::Code::kResourceExhausted);
}

}  // namespace penstock_client
