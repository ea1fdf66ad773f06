// The calling thread's last error, which penstock_last_error shows.
//
// Threads:  each has its own.
// Owns:     the text.
#pragma once

#include <string>

#include "ring/status.h"

namespace penstock_client {

std::string& LastError();

// Keeps the message and returns the code.
inline int Fail(const penstock::ring::Status& status) {
  LastError() = status.message;
  return static_cast<int>(status.code);
}

}  // namespace penstock_client
