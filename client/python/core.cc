// penstock._core: the Loader, over the C interface. docs/decisions/0001-python-binding.md says why
// nanobind makes the class and NumPy's own interface the arrays.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "client/c/penstock.h"
#include "client/python/arrays.h"

namespace nb = nanobind;

namespace penstock_python {
namespace {

// How often a waiting loader looks for Ctrl-C.
constexpr int64_t kSignalNs = 100'000'000;

// Sets the exception of penstock._errors for a result of the C interface.
void SetError(int code, const char* message) {
  try {
    nb::object error = nb::module_::import_("penstock._errors").attr("from_code")(code, message);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (nb::python_error& error) {
    error.restore();
  }
}

[[noreturn]] void ThrowError(int code, const char* message) {
  SetError(code, message);
  throw nb::python_error();
}

class Loader {
 public:
  Loader(const std::string& name, const std::optional<std::string>& socket,
         const std::string& group, const std::optional<double>& timeout) {
    if (timeout.has_value()) {
      if (!(*timeout >= 0)) ThrowError(PENSTOCK_INVALID_ARGUMENT, "timeout is below zero");
      timeout_ns_ = static_cast<int64_t>(std::min(*timeout, 1e9) * 1e9);
    }
    int code;
    {
      nb::gil_scoped_release release;
      code = penstock_attach(name.c_str(), socket ? socket->c_str() : nullptr, group.c_str(),
                             &loader_);
    }
    if (code != PENSTOCK_OK) ThrowError(code, penstock_last_error());
    if (!arrays_.Describe(loader_)) {
      penstock_detach(loader_);
      throw nb::python_error();
    }
    penstock_stats stats;
    penstock_get_stats(loader_, &stats);
    step_ = static_cast<int64_t>(stats.position) - 1;
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader() { Close(); }

  // The next element; null without an error at the end, null with one otherwise.
  PyObject* Next() {
    if (loader_ == nullptr) {
      SetError(PENSTOCK_FAILED_PRECONDITION, "the loader is closed");
      return nullptr;
    }
    penstock_batch* batch = nullptr;
    int code = PENSTOCK_TIMEOUT;
    // A ready batch is not worth giving up the GIL.
    if (penstock_ready(loader_)) code = penstock_next(loader_, 0, &batch);
    if (code == PENSTOCK_TIMEOUT && !Wait(&code, &batch)) return nullptr;
    if (code == PENSTOCK_END) return nullptr;
    if (code != PENSTOCK_OK) {
      SetError(code, penstock_last_error());
      return nullptr;
    }
    step_ = static_cast<int64_t>(penstock_batch_step(batch));
    epoch_ = penstock_batch_epoch(batch);
    rows_ = penstock_batch_rows(batch);
    valid_ = penstock_batch_valid(batch);
    uint32_t cursor_bytes = 0;
    const void* cursor = penstock_batch_cursor(batch, &cursor_bytes);
    cursor_.assign(static_cast<const char*>(cursor), cursor_bytes);
    if (penstock_batch_is_copy(batch) && !warned_ && !WarnOfCopies()) {
      penstock_batch_release(batch);
      return nullptr;
    }
    return arrays_.MakeElement(batch);
  }

  // Batches that are still in use stay valid.
  void Close() {
    if (loader_ == nullptr) return;
    penstock_loader* loader = loader_;
    loader_ = nullptr;
    if (num_waiting_ == 0) {
      penstock_detach(loader);
    } else {
      // Another thread waits in it; that one detaches.
      closing_ = loader;
    }
  }

  nb::dict Stats() const {
    if (loader_ == nullptr) {
      ThrowError(PENSTOCK_FAILED_PRECONDITION, "the loader is closed");
    }
    penstock_stats stats;
    penstock_get_stats(loader_, &stats);
    nb::dict out;
    out["batches"] = stats.batches;
    out["bytes"] = stats.bytes;
    out["copies"] = stats.copies;
    out["waits"] = stats.waits;
    out["sleeps"] = stats.sleeps;
    out["wait_seconds"] = static_cast<double>(stats.wait_ns) * 1e-9;
    out["position"] = stats.position;
    out["published"] = stats.published;
    out["leases"] = stats.leases;
    out["lease_share"] = stats.lease_share;
    out["consumer"] = stats.consumer;
    return out;
  }

  size_t Length() const {
    if (loader_ == nullptr) ThrowError(PENSTOCK_FAILED_PRECONDITION, "the loader is closed");
    uint64_t steps = 0;
    if (penstock_num_steps(loader_, &steps) != PENSTOCK_OK) {
      PyErr_SetString(PyExc_TypeError, penstock_last_error());
      throw nb::python_error();
    }
    return steps;
  }

  nb::dict StateDict() const {
    nb::dict out;
    out["cursor"] = cursor();
    out["step"] = step_;
    return out;
  }

  nb::bytes cursor() const { return nb::bytes(cursor_.data(), cursor_.size()); }
  int64_t step() const { return step_; }
  uint64_t epoch() const { return epoch_; }
  uint32_t rows() const { return rows_; }
  uint32_t valid() const { return valid_; }
  bool closed() const { return loader_ == nullptr; }

 private:
  // Waits without the GIL, and lets Python handle its signals. False with a Python error set.
  bool Wait(int* code, penstock_batch** batch) {
    int64_t left_ns = timeout_ns_;
    penstock_loader* loader = loader_;
    ++num_waiting_;
    bool fine = true;
    while (true) {
      const int64_t slice_ns = std::min(left_ns, kSignalNs);
      {
        nb::gil_scoped_release release;
        *code = penstock_next(loader, slice_ns, batch);
      }
      if (*code != PENSTOCK_TIMEOUT) break;
      if (PyErr_CheckSignals() != 0) {
        fine = false;
        break;
      }
      if (closing_ != nullptr) {
        SetError(PENSTOCK_FAILED_PRECONDITION, "the loader is closed");
        fine = false;
        break;
      }
      if (left_ns != PENSTOCK_FOREVER) left_ns -= slice_ns;
      if (left_ns <= 0) {
        SetError(PENSTOCK_DEADLINE_EXCEEDED,
                 ("no batch came in " + std::to_string(timeout_ns_ * 1e-9) +
                  " seconds; see what the pipeline does: penstock stats")
                     .c_str());
        fine = false;
        break;
      }
    }
    if (--num_waiting_ == 0 && closing_ != nullptr) {
      penstock_detach(closing_);
      closing_ = nullptr;
    }
    return fine;
  }

  bool WarnOfCopies() {
    if (loader_ == nullptr) return true;  // closed meanwhile
    warned_ = true;
    penstock_stats stats;
    penstock_get_stats(loader_, &stats);
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                            "this trainer holds %u batches, its share of the ring; batches beyond "
                            "it are copied (stats()[\"copies\"] counts them). Let go of earlier "
                            "ones, or give the ring more slots",
                            static_cast<unsigned>(stats.leases)) == 0;
  }

  penstock_loader* loader_ = nullptr;
  penstock_loader* closing_ = nullptr;  // closed while a thread waited in it
  int num_waiting_ = 0;
  int64_t timeout_ns_ = PENSTOCK_FOREVER;
  ArrayFactory arrays_;
  std::string cursor_;  // empty before the first batch
  int64_t step_ = -1;
  uint64_t epoch_ = 0;
  uint32_t rows_ = 0;
  uint32_t valid_ = 0;
  bool warned_ = false;
};

PyObject* LoaderIter(PyObject* self) { return Py_NewRef(self); }
PyObject* LoaderNext(PyObject* self) { return nb::inst_ptr<Loader>(self)->Next(); }

PyType_Slot loader_slots[] = {{Py_tp_iter, reinterpret_cast<void*>(&LoaderIter)},
                              {Py_tp_iternext, reinterpret_cast<void*>(&LoaderNext)},
                              {0, nullptr}};

}  // namespace
}  // namespace penstock_python

NB_MODULE(_core, m) {
  using penstock_python::Loader;
  if (!penstock_python::ImportNumpy()) throw nb::python_error();
  m.doc() = "The native part of penstock.";
  m.def("version", &penstock_version, "The release, such as \"0.1.0\".");
  m.def("abi_version", &penstock_abi_version, "The version of the ring's ABI.");
  m.def("default_socket", &penstock_default_socket, "The socket that attach() uses by default.");
  nb::class_<Loader>(m, "Loader", nb::type_slots(penstock_python::loader_slots),
                     "Batches of one pipeline, in order; see penstock.attach.")
      .def(nb::init<const std::string&, const std::optional<std::string>&, const std::string&,
                    const std::optional<double>&>(),
           nb::arg("name"), nb::arg("socket").none() = nb::none(), nb::arg("group") = "default",
           nb::arg("timeout").none() = nb::none())
      .def("stats", &Loader::Stats,
           "What this loader has seen: batches, bytes, copies (batches beyond its share of the "
           "ring), waits, wait_seconds, leases and more.")
      .def("state_dict", &Loader::StateDict,
           "The position behind the batch taken last, for a checkpoint: {\"cursor\": bytes, "
           "\"step\": int}. Before the first batch the cursor is empty, and the step is the one "
           "before the first that this loader will take: -1 at the start of the stream.")
      .def("close", &Loader::Close, "Leaves. Arrays that are still in use stay valid.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](Loader& self, nb::handle, nb::handle, nb::handle) { self.Close(); },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none())
      .def("__len__", &Loader::Length,
           "The steps of the whole stream, from step 0 to its end, wherever this loader begins. "
           "TypeError where they are not known, with the reason: the stream has no end, its files "
           "have no index (`penstock index`), or only reading tells.")
      // An object with a length is false when that is zero.
      .def("__bool__", [](Loader&) { return true; })
      .def_prop_ro("step", &Loader::step, "The step of the batch taken last; see state_dict.")
      .def_prop_ro("cursor", &Loader::cursor,
                   "The position behind it, as bytes: with it a pipeline goes on.")
      .def_prop_ro("epoch", &Loader::epoch, "The epoch of its first row.")
      .def_prop_ro("rows", &Loader::rows, "Its number of rows.")
      .def_prop_ro(
          "valid", &Loader::valid,
          "How many of them, from the first on, are elements: fewer than rows only where the "
          "spec fills a last batch up (remainder: PAD).")
      .def_prop_ro("closed", &Loader::closed);
}
