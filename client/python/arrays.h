// From a batch of the C interface to a dict of NumPy arrays: the path that is taken once a batch.
//
// Threads:  the caller holds the GIL.
// Owns:     the arrays share one lease object, which releases the batch when the last of them dies.
// Cost:     the Python objects that it returns, and that lease object; no copy, no other
// allocation.
#pragma once

#include <Python.h>

#include <vector>

#include "client/c/penstock.h"

namespace penstock_python {

// Loads NumPy's C interface. False with a Python error set.
bool ImportNumpy();

class ArrayFactory {
 public:
  ArrayFactory() = default;
  ArrayFactory(const ArrayFactory&) = delete;
  ArrayFactory& operator=(const ArrayFactory&) = delete;
  ~ArrayFactory();

  // Learns names and element types. False with a Python error set.
  bool Describe(const penstock_loader* loader);

  // A new dict, which has taken the batch over; null with a Python error set, and the batch
  // released.
  PyObject* MakeDict(penstock_batch* batch) const;

 private:
  struct Tensor {
    PyObject* name;   // interned
    PyObject* dtype;  // PyArray_Descr
  };
  std::vector<Tensor> tensors_;
};

}  // namespace penstock_python
