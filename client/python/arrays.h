// From a batch of the C interface to arrays in the structure of its element: the path that is taken
// once a batch.
//
//   numbers         a read-only NumPy array over the ring's memory
//   strings         an array of `bytes` objects, which are copies
//   ragged tensors  a penstock.RaggedTensor over such arrays
//   sparse tensors  a penstock.SparseTensor of such arrays
//
// Threads:  the caller holds the GIL.
// Owns:     the arrays share one lease object, which releases the batch when the last of them dies.
// Limits:   offsets of strings are checked one by one as they are used.
// Cost:     the Python objects that it returns, and that lease object; no copy, no other
//           allocation but for strings.
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

  // Learns names, element types and the structure. False with a Python error set.
  bool Describe(const penstock_loader* loader);

  // A new element, which has taken the batch over; null with a Python error set, and the batch
  // released.
  PyObject* MakeElement(penstock_batch* batch) const;

 private:
  struct Tensor {
    PyObject* name = nullptr;   // interned
    PyObject* dtype = nullptr;  // PyArray_Descr; null for strings
  };

  bool ReadStructure(const char* text);
  PyObject* MakeDict(const penstock_batch* batch, PyObject* lease) const;
  // The part of the structure that `node` stands for; *next is the next tensor.
  PyObject* MakeNode(PyObject* node, const penstock_batch* batch, PyObject* lease,
                     uint32_t* next) const;
  PyObject* MakeTensor(const penstock_batch* batch, uint32_t index, PyObject* lease) const;
  PyObject* MakeSparse(const penstock_tensor& tensor, PyObject* dtype, PyObject* lease) const;
  PyObject* MakeRagged(const penstock_tensor& tensor, PyObject* values, PyObject* lease) const;

  std::vector<Tensor> tensors_;
  PyObject* structure_ = nullptr;     // of dicts, lists and None; null: a flat dict
  PyObject* ragged_class_ = nullptr;  // null: no tensor is ragged
  PyObject* sparse_class_ = nullptr;  // the same of sparse ones
};

}  // namespace penstock_python
