// penstock._core.request_spec: creating, validating and deleting pipelines, for penstock._control.
//
// Threads:  under the GIL, which is released while the daemon is busy.
#pragma once

#include <nanobind/nanobind.h>

namespace penstock_python {

void DefineControl(nanobind::module_& m);

}  // namespace penstock_python
