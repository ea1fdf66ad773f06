// penstock.cuda's native part: a device, and arrays in its memory.
//
// Threads:  under the GIL, but for the release of what a device has let go of, which takes it.
// Owns:     an array its memory: an allocation of its own, or a batch's lease.
// Limits:   C order; no arithmetic: torch, JAX and CuPy take these arrays without a copy.
// Cost:     some microseconds a copy or array.
#pragma once

#include <Python.h>

#include <nanobind/nanobind.h>

#include <cstdint>

#include "client/c/penstock_cuda.h"

namespace penstock_python {

// Adds Cuda and DeviceArray to the module.
void DefineDevice(nanobind::module_& module);

// The device behind a Python object of type Cuda, or null.
penstock_cuda* DeviceOf(nanobind::handle cuda);

// The tensor of a batch as a DeviceArray that holds `lease`; None where it is not on the device,
// null with a Python error set.
PyObject* MakeDeviceArray(nanobind::handle cuda, penstock_batch* batch, uint32_t index,
                          uintptr_t stream, PyObject* lease);

}  // namespace penstock_python
