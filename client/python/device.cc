#include "client/python/device.h"

#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/python/arrays.h"
#include "client/python/dlpack.h"
#include "client/python/error.h"
#include "client/python/gil.h"

namespace nb = nanobind;

namespace penstock_python {
namespace {

void* ToStream(uintptr_t stream) { return reinterpret_cast<void*>(stream); }

// Called when the device has let go of something: from any call into the library, with the GIL or
// without.
void DecRef(void* object) {
  if (Py_IsInitialized() == 0) return;
  const WithGil held;
  Py_DECREF(static_cast<PyObject*>(object));
}

class Cuda {
 public:
  explicit Cuda(int32_t device) {
    if (const int code = penstock_cuda_open(device, &cuda_); code != PENSTOCK_OK) {
      ThrowError(code, penstock_last_error());
    }
  }
  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;
  ~Cuda() { penstock_cuda_close(cuda_); }

  penstock_cuda* get() const { return cuda_; }

  void Copy(nb::handle array, uint64_t address, uintptr_t stream) const {
    const nb::object contiguous = nb::module_::import_("numpy").attr("ascontiguousarray")(array);
    void* memory;
    uint64_t bytes;
    LookAt(contiguous.ptr(), &memory, &bytes);
    Check(penstock_cuda_copy(cuda_, BatchOf(contiguous.ptr()), memory, bytes, address,
                             ToStream(stream)));
    Check(penstock_cuda_after(cuda_, ToStream(stream), &DecRef, contiguous.inc_ref().ptr()));
  }

  uint64_t Poll() const {
    uint64_t pending = 0;
    Check(penstock_cuda_poll(cuda_, &pending));
    return pending;
  }

  void Synchronize(uintptr_t stream) const {
    int code;
    {
      const WithoutGil released;
      code = penstock_cuda_synchronize(cuda_, ToStream(stream));
    }
    Check(code);
  }

  nb::dict Stats() const {
    penstock_cuda_stats stats;
    penstock_cuda_get_stats(cuda_, &stats);
    nb::dict out;
    out["copies"] = stats.copies;
    out["copied_bytes"] = stats.copied_bytes;
    out["staged_copies"] = stats.staged_copies;
    out["staged_bytes"] = stats.staged_bytes;
    out["pending"] = stats.pending;
    out["pinned_bytes"] = stats.pinned_bytes;
    out["why_staged"] = penstock_cuda_why_staged(cuda_);
    return out;
  }

  int32_t device() const { return penstock_cuda_device(cuda_); }
  int32_t driver_version() const { return penstock_cuda_driver_version(cuda_); }

  static void Check(int code) {
    if (code != PENSTOCK_OK) ThrowError(code, penstock_last_error());
  }

 private:
  penstock_cuda* cuda_ = nullptr;
};

class DeviceArray {
 public:
  DeviceArray(nb::object cuda, uint64_t address, std::vector<int64_t> shape, nb::object dtype,
              uint32_t dtype_code, uintptr_t stream, PyObject* lease)
      : cuda_(std::move(cuda)),
        address_(address),
        shape_(std::move(shape)),
        dtype_(std::move(dtype)),
        dtype_code_(dtype_code),
        stream_(stream),
        lease_(lease) {
    Py_XINCREF(lease_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    if (lease_ == nullptr) {
      penstock_cuda_free(cuda(), address_, ToStream(stream_));
    } else {
      // When what was enqueued with it is done; a lost device's error comes with the next batch.
      penstock_cuda_after(cuda(), ToStream(stream_), &DecRef, lease_);
    }
  }

  penstock_cuda* cuda() const { return nb::inst_ptr<Cuda>(cuda_)->get(); }
  const nb::object& dtype() const { return dtype_; }
  nb::tuple shape() const {
    nb::list sizes;
    for (const int64_t size : shape_) sizes.append(size);
    return nb::tuple(sizes);
  }
  size_t ndim() const { return shape_.size(); }
  int64_t size() const {
    int64_t product = 1;
    for (const int64_t axis : shape_) product *= axis;
    return product;
  }
  int64_t nbytes() const { return size() * nb::cast<int64_t>(dtype_.attr("itemsize")); }
  int32_t device() const { return penstock_cuda_device(cuda()); }

  nb::dict Interface() const {
    nb::dict out;
    out["shape"] = shape();
    out["typestr"] = dtype_.attr("str");
    out["data"] = nb::make_tuple(address_, lease_ != nullptr);
    out["version"] = 3;
    out["strides"] = nb::none();
    // 1 is the legacy default stream; 0 would be ambiguous.
    out["stream"] = stream_ == 0 ? uintptr_t{1} : stream_;
    return out;
  }

  // The stream is CUDA's as DLPack counts them: None and 1 the legacy default stream, 2 that of the
  // thread, -1 none at all.
  nb::object Capsule(nb::handle self, nb::handle stream) {
    const int64_t number = stream.is_none() ? 1 : nb::cast<int64_t>(stream);
    if (number != -1) {
      const uintptr_t wanted = number <= 1 ? 0 : static_cast<uintptr_t>(number);
      if (wanted != stream_) {
        Cuda::Check(penstock_cuda_order(cuda(), ToStream(stream_), ToStream(wanted)));
        // Who uses it last says when its memory is free.
        stream_ = wanted;
      }
    }
    return MakeDlpackCapsule(self, address_, device(), shape_, dtype_code_);
  }

  nb::object ToNumpy() const {
    nb::object array = nb::module_::import_("numpy").attr("empty")(shape(), dtype_);
    void* memory;
    uint64_t bytes;
    LookAt(array.ptr(), &memory, &bytes);
    Cuda::Check(penstock_cuda_read(cuda(), address_, bytes, memory, ToStream(stream_)));
    return array;
  }

 private:
  const nb::object cuda_;
  const uint64_t address_;
  const std::vector<int64_t> shape_;
  const nb::object dtype_;
  const uint32_t dtype_code_;
  uintptr_t stream_;
  PyObject* const lease_;  // of a batch in a device's ring; null: memory of its own
};

nb::object ToDevice(nb::handle self, nb::handle array, uintptr_t stream) {
  const Cuda& cuda = *nb::inst_ptr<Cuda>(self);
  std::vector<int64_t> shape = nb::cast<std::vector<int64_t>>(array.attr("shape"));
  const uint32_t code = DtypeCode(array.attr("dtype").ptr());
  if (code == 0) {
    throw nb::type_error("only arrays of numbers go to a device");
  }
  uint64_t address = 0;
  Cuda::Check(penstock_cuda_allocate(cuda.get(), nb::cast<uint64_t>(array.attr("nbytes")),
                                     ToStream(stream), &address));
  auto made = std::make_unique<DeviceArray>(nb::borrow(self), address, std::move(shape),
                                            nb::borrow(array.attr("dtype")), code, stream, nullptr);
  cuda.Copy(array, address, stream);
  return nb::cast(made.release(), nb::rv_policy::take_ownership);
}

}  // namespace

penstock_cuda* DeviceOf(nb::handle cuda) {
  return nb::isinstance<Cuda>(cuda) ? nb::inst_ptr<Cuda>(cuda)->get() : nullptr;
}

PyObject* MakeDeviceArray(nb::handle cuda, penstock_batch* batch, uint32_t index, uintptr_t stream,
                          PyObject* lease) {
  penstock_device_tensor tensor;
  const int code = penstock_batch_on_device(batch, index, ToStream(stream), &tensor);
  if (code == PENSTOCK_FAILED_PRECONDITION) Py_RETURN_NONE;
  if (code != PENSTOCK_OK) {
    SetError(code, penstock_last_error());
    return nullptr;
  }
  PyObject* dtype = MakeDtype(tensor.dtype);
  if (dtype == nullptr) return nullptr;
  auto made =
      std::make_unique<DeviceArray>(nb::borrow(cuda), tensor.address,
                                    std::vector<int64_t>(tensor.shape, tensor.shape + tensor.ndim),
                                    nb::steal(dtype), tensor.dtype, stream, lease);
  return nb::cast(made.release(), nb::rv_policy::take_ownership).release().ptr();
}

void DefineDevice(nb::module_& m) {
  nb::class_<Cuda>(m, "Cuda", "A CUDA device; see penstock.cuda.")
      .def(nb::init<int32_t>(), nb::arg("device") = 0)
      .def("copy", &Cuda::Copy, nb::arg("array"), nb::arg("address"), nb::arg("stream") = 0,
           "Enqueues a copy of a NumPy array to the address in the device's memory. An array of a "
           "batch is "
           "held until the copy is done, which later calls look for.")
      .def("to_device", &ToDevice, nb::arg("array"), nb::arg("stream") = 0,
           "The same into new memory: a DeviceArray.")
      .def("synchronize", &Cuda::Synchronize, nb::arg("stream") = 0,
           "Waits until the stream has done all that it was given so far.")
      .def("poll", &Cuda::Poll, "Looks for what is done; returns how much is not.")
      .def("stats", &Cuda::Stats,
           "Copies straight from the ring (copies, copied_bytes), through a pinned buffer "
           "(staged_copies, "
           "staged_bytes, why_staged), pinned_bytes of the ring, and pending.")
      .def_prop_ro("device", &Cuda::device, "Its number.")
      .def_prop_ro("driver_version", &Cuda::driver_version, "12080 is CUDA 12.8.");
  nb::class_<DeviceArray>(
      m, "DeviceArray",
      "An array in a device's memory, in C order: for torch, JAX and CuPy, by DLPack or "
      "__cuda_array_interface__.")
      .def_prop_ro("shape", &DeviceArray::shape)
      .def_prop_ro("dtype", &DeviceArray::dtype)
      .def_prop_ro("ndim", &DeviceArray::ndim)
      .def_prop_ro("size", &DeviceArray::size)
      .def_prop_ro("nbytes", &DeviceArray::nbytes)
      .def_prop_ro("device", &DeviceArray::device)
      .def_prop_ro("__cuda_array_interface__", &DeviceArray::Interface)
      .def("__dlpack_device__",
           [](const DeviceArray& self) { return nb::make_tuple(kDlpackCuda, self.device()); })
      .def(
          "__dlpack__",
          [](nb::handle self, nb::handle stream, nb::handle, nb::handle device, nb::handle copy) {
            const DeviceArray& array = *nb::inst_ptr<DeviceArray>(self);
            if (!copy.is_none() && nb::cast<bool>(copy))
              throw nb::buffer_error("the array is shown where it is: copy it afterwards");
            if (!device.is_none() && !device.equal(nb::make_tuple(kDlpackCuda, array.device())))
              throw nb::buffer_error("the array is on a CUDA device, and shown only there");
            return nb::inst_ptr<DeviceArray>(self)->Capsule(self, stream);
          },
          nb::kw_only(), nb::arg("stream").none() = nb::none(),
          nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
          nb::arg("copy").none() = nb::none())
      .def("numpy", &DeviceArray::ToNumpy,
           "A copy in this process's memory; waits for the device.");
}

}  // namespace penstock_python
