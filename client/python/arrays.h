// From a batch of the C interface to arrays in the structure of its element: the path that is taken
// once a batch.
//
//   numbers         a read-only NumPy array over the ring's memory
//   strings         an array of `bytes` objects, which are copies: of a class of NumPy's arrays
//                   whose buffer is the string, not a pointer
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

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "client/c/penstock.h"

namespace penstock_python {

// Loads NumPy's C interface. False with a Python error set.
bool ImportNumpy();

// The same array over memory that may be written, for an array (or a view of one) over a batch: a
// new reference, None for an array over other memory, null with a Python error set.
PyObject* MakeWritable(PyObject* array);

// The NumPy type of an element type of penstock.h, or null with a Python error set; and back, 0 for
// any other.
PyObject* MakeDtype(uint32_t dtype);
uint32_t DtypeCode(PyObject* dtype);

// The class of arrays of strings, borrowed.
PyObject* StringsType();

// Where a contiguous NumPy array lies.
void LookAt(PyObject* array, void** memory, uint64_t* bytes);
// An object that has taken the batch over, and releases it; null with a Python error set, and the
// batch released.
PyObject* MakeLease(penstock_batch* batch);
// The batch whose memory an array of an element, or a view of it, shows, or that of a lease; null
// for any other.
penstock_batch* BatchOf(PyObject* array);

class ArrayFactory {
 public:
  ArrayFactory() = default;
  ArrayFactory(const ArrayFactory&) = delete;
  ArrayFactory& operator=(const ArrayFactory&) = delete;
  ~ArrayFactory();

  // Learns names, element types and the structure. False with a Python error set.
  bool Describe(const penstock_loader* loader);

  // From now on tensors on the device of `cuda` (penstock_python::DeviceOf) are DeviceArrays;
  // `cuda` is the caller's and outlives this.
  void TakeFrom(nanobind::handle cuda, uintptr_t stream) {
    cuda_ = cuda;
    stream_ = stream;
  }

  // A new element, which holds `lease`, the batch's; null with a Python error set.
  PyObject* MakeElement(const penstock_batch* batch, PyObject* lease) const;

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
  nanobind::handle cuda_;             // not valid: tensors are in shared memory
  uintptr_t stream_ = 0;
};

}  // namespace penstock_python
