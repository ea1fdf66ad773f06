#include "client/python/arrays.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstring>

#include "client/python/device.h"

namespace penstock_python {
namespace {

constexpr uint32_t kMaxDims = 16;  // of any tensor of a ring

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

// The string of an array without axes, borrowed; null with a Python error set for one of several.
PyObject* LoneString(PyArrayObject* array) {
  if (PyArray_NDIM(array) > 0) {
    PyErr_SetString(PyExc_TypeError,
                    "an array of several strings has no bytes of its own: b\"\".join(x.ravel()) "
                    "are theirs, and x[0] is a bytes object");
    return nullptr;
  }
  PyObject* string = *static_cast<PyObject**>(PyArray_DATA(array));
  return string != nullptr ? string : Py_None;
}

// NumPy's arrays of objects give whoever asks for their bytes (bytes(x), file.write, hashlib) those
// of pointers. Ours give a lone string's own, and refuse those of several. What NumPy makes of them
// with another element type is as NumPy's.
int GetStringBuffer(PyObject* self, Py_buffer* view, int flags) {
  auto* array = reinterpret_cast<PyArrayObject*>(self);
  if (PyArray_TYPE(array) != NPY_OBJECT)
    return PyArray_Type.tp_as_buffer->bf_getbuffer(self, view, flags);
  view->obj = nullptr;
  PyObject* string = LoneString(array);
  return string != nullptr ? PyObject_GetBuffer(string, view, flags) : -1;
}

// tobytes(), in the same way.
PyObject* StringToBytes(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto* array = reinterpret_cast<PyArrayObject*>(self);
  if (PyArray_TYPE(array) == NPY_OBJECT) {
    PyObject* string = LoneString(array);
    return string != nullptr ? PyBytes_FromObject(string) : nullptr;
  }
  PyObject* plain = PyArray_View(array, nullptr, &PyArray_Type);
  PyObject* method = plain != nullptr ? PyObject_GetAttrString(plain, "tobytes") : nullptr;
  Py_XDECREF(plain);
  PyObject* bytes = method != nullptr ? PyObject_Call(method, args, kwargs) : nullptr;
  Py_XDECREF(method);
  return bytes;
}

// In a pickle they are NumPy's own, for processes without this package.
PyObject* ReduceStrings(PyObject* self, PyObject* protocol) {
  PyObject* plain = PyArray_View(reinterpret_cast<PyArrayObject*>(self), nullptr, &PyArray_Type);
  if (plain == nullptr) return nullptr;
  PyObject* reduced = PyObject_CallMethod(plain, "__reduce_ex__", "O", protocol);
  Py_DECREF(plain);
  return reduced;
}

PyTypeObject* MakeStringsType() {
  static PyMethodDef methods[] = {
      {"__reduce_ex__", &ReduceStrings, METH_O, nullptr},
      {"tobytes", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&StringToBytes)),
       METH_VARARGS | METH_KEYWORDS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_methods, methods},
      {Py_bf_getbuffer, reinterpret_cast<void*>(&GetStringBuffer)},
      {Py_tp_doc, const_cast<char*>("A NumPy array of bytes objects. As a buffer, one without axes "
                                    "is its string, and others are refused.")},
      {0, nullptr}};
  static PyType_Spec spec = {"penstock._core.Strings", 0, 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* bases = PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyArray_Type));
  if (bases == nullptr) return nullptr;
  PyObject* type = PyType_FromSpecWithBases(&spec, bases);
  Py_DECREF(bases);
  return reinterpret_cast<PyTypeObject*>(type);
}

PyTypeObject* strings_type = nullptr;

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
    if (!PyErr_ExceptionMatches(PyExc_ImportError)) return nullptr;
    PyErr_Clear();
    static bool warned = false;
    if (!warned && PyErr_WarnEx(PyExc_RuntimeWarning,
                                "bfloat16 tensors are shown as uint16, since the package ml_dtypes "
                                "is not installed: pip install ml_dtypes",
                                1) != 0) {
      return nullptr;
    }
    warned = true;
    return PyArray_DescrFromType(NPY_UINT16);
  }
  PyObject* type = PyObject_GetAttrString(module, "bfloat16");
  Py_DECREF(module);
  PyArray_Descr* descr = nullptr;
  if (type != nullptr) PyArray_DescrConverter(type, &descr);
  Py_XDECREF(type);
  return descr;
}

// A read-only array over memory that `lease` holds.
PyObject* MakeArray(PyObject* dtype, uint32_t ndim, const int64_t* shape, const void* data,
                    PyObject* lease) {
  Py_INCREF(dtype);
  PyObject* array = PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype), static_cast<int>(ndim),
      const_cast<npy_intp*>(shape), nullptr, const_cast<void*>(data), NPY_ARRAY_CARRAY_RO, nullptr);
  if (array == nullptr) return nullptr;
  Py_INCREF(lease);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), lease) < 0) Py_CLEAR(array);
  return array;
}

// An array of `bytes`.
PyObject* MakeStrings(const penstock_tensor& tensor, uint32_t ndim, const int64_t* shape) {
  PyObject* array = PyArray_New(strings_type, static_cast<int>(ndim), const_cast<npy_intp*>(shape),
                                NPY_OBJECT, nullptr, nullptr, 0, 0, nullptr);
  if (array == nullptr) return nullptr;
  // Without an element yet: NumPy takes null for None.
  auto** elements = static_cast<PyObject**>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)));
  const char* bytes = static_cast<const char*>(tensor.data);
  for (uint64_t i = 0; i < tensor.num_strings; ++i) {
    const uint64_t first = static_cast<uint64_t>(tensor.offsets[i]);
    const uint64_t last = static_cast<uint64_t>(tensor.offsets[i + 1]);
    if (first > last || last > tensor.bytes) {
      PyErr_Format(PyExc_ValueError,
                   "the ring that penstockd sent is malformed: tensor \"%s\", "
                   "string %llu",
                   tensor.name, static_cast<unsigned long long>(i));
      Py_DECREF(array);
      return nullptr;
    }
    PyObject* element =
        PyBytes_FromStringAndSize(bytes + first, static_cast<Py_ssize_t>(last - first));
    if (element == nullptr) {
      Py_DECREF(array);
      return nullptr;
    }
    PyObject* before = elements[i];
    elements[i] = element;
    Py_XDECREF(before);
  }
  return array;
}

// How many tensors a structure of JSON has; -1 with a Python error set.
Py_ssize_t CountTensors(PyObject* node) {
  if (node == Py_None) return 1;
  if (!PyDict_Check(node) && !PyList_Check(node)) {
    PyErr_SetString(PyExc_ValueError,
                    "the structure that penstockd sent is malformed: it has other parts than "
                    "objects, arrays and null");
    return -1;
  }
  if (Py_EnterRecursiveCall(" in the structure of an element") != 0) return -1;
  Py_ssize_t count = 0;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  const auto add = [&count](PyObject* part) {
    const Py_ssize_t inside = CountTensors(part);
    count = inside < 0 ? -1 : count + inside;
    return inside >= 0;
  };
  if (PyDict_Check(node)) {
    while (PyDict_Next(node, &position, &key, &value) && add(value)) {
    }
  } else {
    for (; position < PyList_GET_SIZE(node) && add(PyList_GET_ITEM(node, position)); ++position) {
    }
  }
  Py_LeaveRecursiveCall();
  return count;
}

// Looks a class up once; false with a Python error set.
bool FindClass(const char* module_name, const char* name, PyObject** found) {
  if (*found != nullptr) return true;
  PyObject* module = PyImport_ImportModule(module_name);
  if (module != nullptr) *found = PyObject_GetAttrString(module, name);
  Py_XDECREF(module);
  return *found != nullptr;
}

}  // namespace

bool ImportNumpy() {
  if (_import_array() < 0) return false;
  if (lease_type == nullptr) lease_type = MakeLeaseType();
  if (strings_type == nullptr) strings_type = MakeStringsType();
  return lease_type != nullptr && strings_type != nullptr;
}

PyObject* StringsType() { return reinterpret_cast<PyObject*>(strings_type); }

PyObject* MakeWritable(PyObject* array) {
  if (!PyArray_Check(array)) {
    PyErr_SetString(PyExc_TypeError, "a NumPy array is needed");
    return nullptr;
  }
  auto* given = reinterpret_cast<PyArrayObject*>(array);
  PyObject* base = array;
  while (base != nullptr && PyArray_Check(base)) {
    base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(base));
  }
  if (base == nullptr || Py_TYPE(base) != lease_type) Py_RETURN_NONE;
  void* data = penstock_batch_writable(reinterpret_cast<Lease*>(base)->batch, PyArray_DATA(given));
  if (data == nullptr) {
    PyErr_SetString(PyExc_MemoryError, penstock_last_error());
    return nullptr;
  }
  PyArray_Descr* dtype = PyArray_DESCR(given);
  Py_INCREF(dtype);
  PyObject* made =
      PyArray_NewFromDescr(&PyArray_Type, dtype, PyArray_NDIM(given), PyArray_DIMS(given),
                           PyArray_STRIDES(given), data, NPY_ARRAY_WRITEABLE, nullptr);
  if (made == nullptr) return nullptr;
  Py_INCREF(base);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(made), base) < 0) Py_CLEAR(made);
  return made;
}

PyObject* MakeLease(penstock_batch* batch) {
  Lease* lease = PyObject_New(Lease, lease_type);
  if (lease == nullptr) {
    penstock_batch_release(batch);
    return nullptr;
  }
  lease->batch = batch;
  return reinterpret_cast<PyObject*>(lease);
}

PyObject* MakeDtype(uint32_t dtype) { return reinterpret_cast<PyObject*>(MakeDescr(dtype)); }

uint32_t DtypeCode(PyObject* dtype) {
  if (!PyArray_DescrCheck(dtype)) return 0;
  switch (reinterpret_cast<PyArray_Descr*>(dtype)->type_num) {
    case NPY_BOOL:
      return PENSTOCK_BOOL;
    case NPY_INT8:
      return PENSTOCK_INT8;
    case NPY_UINT8:
      return PENSTOCK_UINT8;
    case NPY_INT16:
      return PENSTOCK_INT16;
    case NPY_UINT16:
      return PENSTOCK_UINT16;
    case NPY_INT32:
      return PENSTOCK_INT32;
    case NPY_UINT32:
      return PENSTOCK_UINT32;
    case NPY_INT64:
      return PENSTOCK_INT64;
    case NPY_UINT64:
      return PENSTOCK_UINT64;
    case NPY_FLOAT16:
      return PENSTOCK_FLOAT16;
    case NPY_FLOAT32:
      return PENSTOCK_FLOAT32;
    case NPY_FLOAT64:
      return PENSTOCK_FLOAT64;
    default:
      break;
  }
  // bfloat16 is a type that another package has added.
  PyObject* name = PyObject_GetAttrString(dtype, "name");
  const char* text = name != nullptr ? PyUnicode_AsUTF8(name) : nullptr;
  const bool is_bfloat16 = text != nullptr && std::strcmp(text, "bfloat16") == 0;
  PyErr_Clear();
  Py_XDECREF(name);
  return is_bfloat16 ? PENSTOCK_BFLOAT16 : 0;
}

void LookAt(PyObject* array, void** memory, uint64_t* bytes) {
  auto* numpy_array = reinterpret_cast<PyArrayObject*>(array);
  *memory = PyArray_DATA(numpy_array);
  *bytes = static_cast<uint64_t>(PyArray_NBYTES(numpy_array));
}

penstock_batch* BatchOf(PyObject* array) {
  while (array != nullptr && PyArray_Check(array)) {
    array = PyArray_BASE(reinterpret_cast<PyArrayObject*>(array));
  }
  return array != nullptr && Py_IS_TYPE(array, lease_type) ? reinterpret_cast<Lease*>(array)->batch
                                                           : nullptr;
}

ArrayFactory::~ArrayFactory() {
  for (const Tensor& tensor : tensors_) {
    Py_XDECREF(tensor.name);
    Py_XDECREF(tensor.dtype);
  }
  Py_XDECREF(structure_);
  Py_XDECREF(ragged_class_);
  Py_XDECREF(sparse_class_);
}

bool ArrayFactory::Describe(const penstock_loader* loader) {
  const uint32_t num_tensors = penstock_num_tensors(loader);
  for (uint32_t i = 0; i < num_tensors; ++i) {
    const penstock_tensor* tensor = penstock_tensor_info(loader, i);
    Tensor& made = tensors_.emplace_back();
    made.name = PyUnicode_InternFromString(tensor->name);
    if (made.name == nullptr) return false;
    if (tensor->dtype != PENSTOCK_STRING) {
      made.dtype = reinterpret_cast<PyObject*>(MakeDescr(tensor->dtype));
      if (made.dtype == nullptr) return false;
    }
    if (tensor->kind == PENSTOCK_KIND_RAGGED &&
        !FindClass("penstock._ragged", "RaggedTensor", &ragged_class_))
      return false;
    if (tensor->kind == PENSTOCK_KIND_SPARSE &&
        !FindClass("penstock._sparse", "SparseTensor", &sparse_class_))
      return false;
  }
  const char* structure = penstock_structure(loader);
  return *structure == '\0' || ReadStructure(structure);
}

bool ArrayFactory::ReadStructure(const char* text) {
  PyObject* module = PyImport_ImportModule("penstock._structure");
  if (module == nullptr) return false;
  structure_ = PyObject_CallMethod(module, "nodes_from_json", "s", text);
  Py_DECREF(module);
  if (structure_ == nullptr) return false;
  const Py_ssize_t count = CountTensors(structure_);
  if (count < 0) return false;
  if (static_cast<size_t>(count) != tensors_.size()) {
    PyErr_Format(
        PyExc_ValueError,
        "the structure that penstockd sent is malformed: it has %zd places for %zd tensors", count,
        static_cast<Py_ssize_t>(tensors_.size()));
    return false;
  }
  return true;
}

PyObject* ArrayFactory::MakeElement(const penstock_batch* batch, PyObject* lease) const {
  uint32_t next = 0;
  return structure_ == nullptr ? MakeDict(batch, lease) : MakeNode(structure_, batch, lease, &next);
}

PyObject* ArrayFactory::MakeDict(const penstock_batch* batch, PyObject* lease) const {
  PyObject* dict = PyDict_New();
  for (uint32_t i = 0; dict != nullptr && i < tensors_.size(); ++i) {
    PyObject* tensor = MakeTensor(batch, i, lease);
    if (tensor == nullptr || PyDict_SetItem(dict, tensors_[i].name, tensor) < 0) Py_CLEAR(dict);
    Py_XDECREF(tensor);
  }
  return dict;
}

PyObject* ArrayFactory::MakeNode(PyObject* node, const penstock_batch* batch, PyObject* lease,
                                 uint32_t* next) const {
  if (node == Py_None) return MakeTensor(batch, (*next)++, lease);
  if (PyList_Check(node)) {
    const Py_ssize_t size = PyList_GET_SIZE(node);
    PyObject* tuple = PyTuple_New(size);
    for (Py_ssize_t i = 0; tuple != nullptr && i < size; ++i) {
      PyObject* part = MakeNode(PyList_GET_ITEM(node, i), batch, lease, next);
      if (part == nullptr) {
        Py_CLEAR(tuple);
      } else {
        PyTuple_SET_ITEM(tuple, i, part);
      }
    }
    return tuple;
  }
  PyObject* dict = PyDict_New();
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (dict != nullptr && PyDict_Next(node, &position, &key, &value)) {
    PyObject* part = MakeNode(value, batch, lease, next);
    if (part == nullptr || PyDict_SetItem(dict, key, part) < 0) Py_CLEAR(dict);
    Py_XDECREF(part);
  }
  return dict;
}

PyObject* ArrayFactory::MakeTensor(const penstock_batch* batch, uint32_t index,
                                   PyObject* lease) const {
  const penstock_tensor& tensor = *penstock_batch_tensor(batch, index);
  if (cuda_.is_valid()) {
    PyObject* array =
        MakeDeviceArray(cuda_, const_cast<penstock_batch*>(batch), index, stream_, lease);
    if (array != Py_None) return array;
    Py_DECREF(array);
  }
  PyObject* dtype = tensors_[index].dtype;
  if (tensor.kind == PENSTOCK_KIND_SPARSE) return MakeSparse(tensor, dtype, lease);
  if (tensor.kind != PENSTOCK_KIND_RAGGED) {
    return dtype != nullptr ? MakeArray(dtype, tensor.ndim, tensor.shape, tensor.data, lease)
                            : MakeStrings(tensor, tensor.ndim, tensor.shape);
  }
  // The axes behind the ragged ones, with all their rows together as the first.
  const uint32_t rank = tensor.ragged_rank;
  int64_t shape[kMaxDims];
  const uint32_t ndim = tensor.ndim - rank;
  shape[0] = tensor.row_splits[rank - 1][tensor.num_row_splits[rank - 1] - 1];
  std::copy(tensor.shape + rank + 1, tensor.shape + tensor.ndim, shape + 1);
  PyObject* values = dtype != nullptr ? MakeArray(dtype, ndim, shape, tensor.data, lease)
                                      : MakeStrings(tensor, ndim, shape);
  return values != nullptr ? MakeRagged(tensor, values, lease) : nullptr;
}

PyObject* ArrayFactory::MakeSparse(const penstock_tensor& tensor, PyObject* dtype,
                                   PyObject* lease) const {
  const int64_t shape[2] = {static_cast<int64_t>(tensor.num_values), tensor.ndim};
  PyObject* numbers = reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_INT64));
  PyObject* indices = MakeArray(numbers, 2, shape, tensor.indices, lease);
  PyObject* values = dtype != nullptr ? MakeArray(dtype, 1, shape, tensor.data, lease)
                                      : MakeStrings(tensor, 1, shape);
  // The batch's own memory: a loader's `shape` goes with its next batch.
  PyObject* dense_shape = MakeArray(numbers, 1, shape + 1, tensor.shape, lease);
  PyObject* sparse = nullptr;
  if (indices != nullptr && values != nullptr && dense_shape != nullptr) {
    sparse = PyObject_CallFunctionObjArgs(sparse_class_, indices, values, dense_shape, nullptr);
  }
  Py_XDECREF(indices);
  Py_XDECREF(values);
  Py_XDECREF(dense_shape);
  Py_DECREF(numbers);
  return sparse;
}

// Takes `values` over.
PyObject* ArrayFactory::MakeRagged(const penstock_tensor& tensor, PyObject* values,
                                   PyObject* lease) const {
  PyObject* splits_dtype = reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_INT64));
  for (uint32_t axis = tensor.ragged_rank; values != nullptr && axis-- > 0;) {
    const int64_t count = static_cast<int64_t>(tensor.num_row_splits[axis]);
    PyObject* splits = MakeArray(splits_dtype, 1, &count, tensor.row_splits[axis], lease);
    PyObject* ragged = splits != nullptr
                           ? PyObject_CallFunctionObjArgs(ragged_class_, values, splits, nullptr)
                           : nullptr;
    Py_XDECREF(splits);
    Py_DECREF(values);
    values = ragged;
  }
  Py_DECREF(splits_dtype);
  if (values == nullptr || !tensor.narrow_splits) return values;
  PyObject* narrow_dtype = reinterpret_cast<PyObject*>(PyArray_DescrFromType(NPY_INT32));
  PyObject* narrow = PyObject_CallMethod(values, "with_row_splits_dtype", "O", narrow_dtype);
  Py_DECREF(narrow_dtype);
  Py_DECREF(values);
  return narrow;
}

}  // namespace penstock_python
