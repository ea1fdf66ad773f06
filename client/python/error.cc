#include "client/python/error.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace penstock_python {

void SetError(int code, const char* message) {
  try {
    nb::object error = nb::module_::import_("penstock._errors").attr("from_code")(code, message);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (nb::python_error& error) {
    error.restore();
  }
}

void ThrowError(int code, const char* message) {
  SetError(code, message);
  throw nb::python_error();
}

}  // namespace penstock_python
