#include "client/python/arrays.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include <string>

namespace penstock_python {
namespace {

// The object that NumPy keeps as an array's base.
struct Lease {
  PyObject_HEAD penstock_batch* batch;
};

void DestroyLease(PyObject* self) {
  penstock_batch_release(reinterpret_cast<Lease*>(self)->batch);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyTypeObject* MakeLeaseType() {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(&DestroyLease)},
      {Py_tp_doc, const_cast<char*>("Holds a batch's memory as long as an array lies over it.")},
      {0, nullptr}};
  static PyType_Spec spec = {"penstock.Lease", sizeof(Lease), 0, Py_TPFLAGS_DEFAULT, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyTypeObject* lease_type = nullptr;

// The NumPy type for an element type of penstock.h; null with a Python error set.
PyArray_Descr* MakeDescr(uint32_t dtype) {
  switch (dtype) {
    case PENSTOCK_BOOL:
      return PyArray_DescrFromType(NPY_BOOL);
    case PENSTOCK_INT8:
      return PyArray_DescrFromType(NPY_INT8);
    case PENSTOCK_UINT8:
      return PyArray_DescrFromType(NPY_UINT8);
    case PENSTOCK_INT16:
      return PyArray_DescrFromType(NPY_INT16);
    case PENSTOCK_UINT16:
      return PyArray_DescrFromType(NPY_UINT16);
    case PENSTOCK_INT32:
      return PyArray_DescrFromType(NPY_INT32);
    case PENSTOCK_UINT32:
      return PyArray_DescrFromType(NPY_UINT32);
    case PENSTOCK_INT64:
      return PyArray_DescrFromType(NPY_INT64);
    case PENSTOCK_UINT64:
      return PyArray_DescrFromType(NPY_UINT64);
    case PENSTOCK_FLOAT16:
      return PyArray_DescrFromType(NPY_FLOAT16);
    case PENSTOCK_FLOAT32:
      return PyArray_DescrFromType(NPY_FLOAT32);
    case PENSTOCK_FLOAT64:
      return PyArray_DescrFromType(NPY_FLOAT64);
    case PENSTOCK_BFLOAT16:
      break;
    default:
      PyErr_Format(PyExc_TypeError, "a tensor has an element type unknown to this client: %u",
                   dtype);
      return nullptr;
  }
  // NumPy has no bfloat16 of its own.
  PyObject* module = PyImport_ImportModule("ml_dtypes");
  if (module == nullptr) {
    PyErr_SetString(PyExc_ImportError,
                    "bfloat16 tensors need the package ml_dtypes; install it: pip install "
                    "ml_dtypes");
    return nullptr;
  }
  PyObject* type = PyObject_GetAttrString(module, "bfloat16");
  Py_DECREF(module);
  PyArray_Descr* descr = nullptr;
  if (type != nullptr) PyArray_DescrConverter(type, &descr);
  Py_XDECREF(type);
  return descr;
}

}  // namespace

bool ImportNumpy() {
  if (_import_array() < 0) return false;
  if (lease_type == nullptr) lease_type = MakeLeaseType();
  return lease_type != nullptr;
}

ArrayFactory::~ArrayFactory() {
  for (const Tensor& tensor : tensors_) {
    Py_XDECREF(tensor.name);
    Py_XDECREF(tensor.dtype);
  }
}

bool ArrayFactory::Describe(const penstock_loader* loader) {
  const uint32_t num_tensors = penstock_num_tensors(loader);
  for (uint32_t i = 0; i < num_tensors; ++i) {
    const penstock_tensor* tensor = penstock_tensor_info(loader, i);
    tensors_.push_back({PyUnicode_InternFromString(tensor->name),
                        reinterpret_cast<PyObject*>(MakeDescr(tensor->dtype))});
    if (tensors_.back().name == nullptr || tensors_.back().dtype == nullptr) return false;
  }
  return true;
}

PyObject* ArrayFactory::MakeDict(penstock_batch* batch) const {
  Lease* lease = PyObject_New(Lease, lease_type);
  if (lease == nullptr) {
    penstock_batch_release(batch);
    return nullptr;
  }
  lease->batch = batch;
  PyObject* base = reinterpret_cast<PyObject*>(lease);
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict != nullptr && i < tensors_.size(); ++i) {
    const penstock_tensor* tensor = penstock_batch_tensor(batch, static_cast<uint32_t>(i));
    Py_INCREF(tensors_[i].dtype);
    PyObject* array = PyArray_NewFromDescr(
        &PyArray_Type, reinterpret_cast<PyArray_Descr*>(tensors_[i].dtype),
        static_cast<int>(tensor->ndim), const_cast<npy_intp*>(tensor->shape), nullptr,
        const_cast<void*>(tensor->data), NPY_ARRAY_CARRAY_RO, nullptr);
    if (array != nullptr) {
      Py_INCREF(base);
      if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), base) < 0) {
        Py_CLEAR(array);
      }
    }
    if (array == nullptr || PyDict_SetItem(dict, tensors_[i].name, array) < 0) Py_CLEAR(dict);
    Py_XDECREF(array);
  }
  Py_DECREF(base);
  return dict;
}

}  // namespace penstock_python
