#include "client/python/dlpack.h"

#include <memory>

#include "client/c/penstock.h"
#include "client/python/gil.h"

namespace nb = nanobind;

namespace penstock_python {
namespace {

struct DlDevice {
  int32_t type;
  int32_t id;
};

struct DlType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};

constexpr uint8_t kInteger = 0;
constexpr uint8_t kUnsigned = 1;
constexpr uint8_t kFloat = 2;
constexpr uint8_t kBrain = 4;
constexpr uint8_t kBool = 6;
constexpr const char* kName = "dltensor";

struct Managed {
  DlManagedTensor managed = {};
  std::vector<int64_t> shape;
  PyObject* owner = nullptr;
};

DlType TypeOf(uint32_t dtype) {
  switch (dtype) {
    case PENSTOCK_BOOL:
      return {kBool, 8, 1};
    case PENSTOCK_INT8:
      return {kInteger, 8, 1};
    case PENSTOCK_UINT8:
      return {kUnsigned, 8, 1};
    case PENSTOCK_INT16:
      return {kInteger, 16, 1};
    case PENSTOCK_UINT16:
      return {kUnsigned, 16, 1};
    case PENSTOCK_INT32:
      return {kInteger, 32, 1};
    case PENSTOCK_UINT32:
      return {kUnsigned, 32, 1};
    case PENSTOCK_INT64:
      return {kInteger, 64, 1};
    case PENSTOCK_UINT64:
      return {kUnsigned, 64, 1};
    case PENSTOCK_FLOAT16:
      return {kFloat, 16, 1};
    case PENSTOCK_BFLOAT16:
      return {kBrain, 16, 1};
    case PENSTOCK_FLOAT32:
      return {kFloat, 32, 1};
    case PENSTOCK_FLOAT64:
      return {kFloat, 64, 1};
    default:
      throw nb::type_error("DLPack has no such element type");
  }
}

// Whoever took the tensor lets go of it in any thread, and may do so when the interpreter has gone:
// then the memory goes with the process.
void Delete(DlManagedTensor* managed) {
  if (Py_IsInitialized() == 0) return;
  auto* held = static_cast<Managed*>(managed->context);
  {
    const WithGil gil;
    Py_DECREF(held->owner);
  }
  delete held;
}

// A capsule that nobody took keeps its name.
void DeleteCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  managed->deleter(managed);
}

}  // namespace

nb::object MakeDlpackCapsule(nb::handle owner, uint64_t address, int32_t device,
                             const std::vector<int64_t>& shape, uint32_t dtype) {
  auto held = std::make_unique<Managed>();
  held->shape = shape;
  DlTensor& tensor = held->managed.tensor;
  tensor.data = reinterpret_cast<void*>(address);
  tensor.device = {kDlpackCuda, device};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = TypeOf(dtype);
  tensor.shape = held->shape.data();
  held->managed.context = held.get();
  held->managed.deleter = &Delete;
  PyObject* capsule = PyCapsule_New(&held->managed, kName, &DeleteCapsule);
  if (capsule == nullptr) throw nb::python_error();
  held->owner = owner.inc_ref().ptr();
  held.release();
  return nb::steal(capsule);
}

}  // namespace penstock_python
