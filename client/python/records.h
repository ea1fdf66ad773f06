// The checksum of TFRecords' bytes, for penstock.io.TFRecordWriter.
#pragma once

#include <nanobind/nanobind.h>

namespace penstock_python {

void DefineRecords(nanobind::module_& m);

}  // namespace penstock_python
