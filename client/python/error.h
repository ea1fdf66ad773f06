// Results of the C interface as Python's exceptions of penstock._errors.
//
// Threads:  under the GIL.
#pragma once

namespace penstock_python {

void SetError(int code, const char* message);
[[noreturn]] void ThrowError(int code, const char* message);

}  // namespace penstock_python
