// penstock._core: the Loader, over the C interface. docs/decisions/0001-python-binding.md says why
// nanobind makes the class and NumPy's own interface the arrays.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "client/c/penstock.h"
#include "client/python/arrays.h"
#include "client/python/control.h"
#include "client/python/device.h"
#include "client/python/error.h"
#include "client/python/gil.h"
#include "client/python/records.h"

namespace nb = nanobind;

namespace penstock_python {
namespace {

// How often a waiting loader looks for Ctrl-C.
constexpr int64_t kSignalNs = 100'000'000;

// The daemon's answer to an attach may have to wait for a pipeline that rests: a timeout of less is
// for batches.
constexpr double kMinAttachSeconds = 1;

// Of a call without the GIL: whether one of Python's signals is to end it, whose exception is set
// then.
int IsInterrupted(void*) {
  const WithGil held;
  return PyErr_CheckSignals() != 0 ? 1 : 0;
}

// Throws what ended a call.
[[noreturn]] void ThrowLast(int code) {
  if (code == PENSTOCK_CANCELLED && PyErr_Occurred() != nullptr) throw nb::python_error();
  ThrowError(code, penstock_last_error());
}

// The number of a word among `words`; throws with all of them.
uint32_t NumberOf(const char* what, const std::string& word,
                  std::initializer_list<const char*> words) {
  uint32_t number = 0;
  std::string all;
  for (const char* one : words) {
    if (word == one) return number;
    all += (number++ == 0 ? "" : ", ") + std::string(one);
  }
  ThrowError(PENSTOCK_INVALID_ARGUMENT,
             (std::string(what) + " is one of " + all + ", not \"" + word + "\"").c_str());
}

// The C interface takes texts up to their first zero byte, which would be another name.
const char* TextOf(const char* what, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    ThrowError(PENSTOCK_INVALID_ARGUMENT, (std::string(what) + " has a zero byte in it").c_str());
  }
  return text.c_str();
}

// A cursor as bytes, or as their hex text: JSON has no bytes.
std::string CursorBytes(nb::handle cursor) {
  if (nb::isinstance<nb::bytes>(cursor)) {
    const nb::bytes bytes = nb::borrow<nb::bytes>(cursor);
    return std::string(bytes.c_str(), bytes.size());
  }
  if (nb::isinstance<nb::str>(cursor)) {
    const nb::object bytes = nb::steal(PyObject_CallMethod(
        reinterpret_cast<PyObject*>(&PyBytes_Type), "fromhex", "O", cursor.ptr()));
    if (bytes.is_valid()) return CursorBytes(bytes);
    PyErr_Clear();
  }
  ThrowError(PENSTOCK_INVALID_ARGUMENT, "a cursor is bytes, or their hex text (bytes.hex)");
}

class Loader {
 public:
  Loader(const std::string& name, const std::optional<std::string>& socket,
         const std::string& group, const std::optional<double>& timeout, const std::string& mode,
         const std::optional<int64_t>& rank, const std::optional<int64_t>& world_size,
         int64_t replica, int64_t replicas, const std::string& delivery, const nb::object& cursor,
         double reconnect, const std::string& slow, double lag,
         const std::optional<std::string>& consumer, bool take_over, nb::object cuda,
         uintptr_t stream, const std::optional<int64_t>& batch_size)
      : name_(name), socket_(socket.value_or(penstock_default_socket())), cuda_(std::move(cuda)) {
    if (timeout.has_value()) {
      if (!(*timeout >= 0)) ThrowError(PENSTOCK_INVALID_ARGUMENT, "timeout is below zero");
      timeout_ns_ = static_cast<int64_t>(std::min(*timeout, 1e9) * 1e9);
    }
    penstock_attach_options options;
    penstock_default_options(&options);
    options.pipeline = TextOf("name", name);
    options.socket = socket ? TextOf("socket", *socket) : nullptr;
    options.group = TextOf("group", group);
    options.consumer_name = consumer ? TextOf("consumer", *consumer) : nullptr;
    if (!cursor.is_none()) cursor_ = CursorBytes(cursor);
    if (!cursor_.empty()) {
      options.cursor = cursor_.data();
      options.cursor_bytes = static_cast<uint32_t>(std::min<size_t>(cursor_.size(), UINT32_MAX));
    }
    options.mode = NumberOf("mode", mode, {"broadcast", "rank", "split"});
    if ((options.mode == PENSTOCK_RANK) != (rank.has_value() && world_size.has_value())) {
      ThrowError(PENSTOCK_INVALID_ARGUMENT,
                 "rank and world_size belong to mode=\"rank\", and it needs both");
    }
    const auto count = [](const char* what, int64_t number) {
      if (number < 0 || number > UINT32_MAX) {
        ThrowError(PENSTOCK_INVALID_ARGUMENT,
                   (std::string(what) + " is out of range: " + std::to_string(number)).c_str());
      }
      return static_cast<uint32_t>(number);
    };
    is_rank_ = options.mode == PENSTOCK_RANK;
    options.rank = count("rank", rank.value_or(0));
    options.world_size = count("world_size", world_size.value_or(1));
    options.replica = count("replica", replica);
    options.replicas = count("replicas", replicas);
    options.at_most_once = NumberOf("delivery", delivery, {"at_least_once", "at_most_once"});
    options.slow = NumberOf("slow", slow, {"block", "detach", "skip"});
    options.take_over = take_over;
    if (batch_size.has_value()) {
      options.batch_rows = count("batch_size", *batch_size);
      has_own_size_ = true;
      if (*batch_size == 0) ThrowError(PENSTOCK_INVALID_ARGUMENT, "batch_size is at least 1");
    }
    if (timeout.has_value()) {
      options.attach_seconds = std::clamp(*timeout, kMinAttachSeconds, options.attach_seconds);
    }
    options.is_cancelled = &IsInterrupted;
    options.lag_seconds = lag;
    options.reconnect_seconds = reconnect;
    if (!cuda_.is_none()) {
      options.cuda = DeviceOf(cuda_);
      if (options.cuda == nullptr) {
        ThrowError(PENSTOCK_INVALID_ARGUMENT, "cuda is a penstock.cuda.Cuda, or None");
      }
    }
    int code;
    {
      const WithoutGil released;
      code = penstock_attach_with(&options, &loader_);
    }
    if (code != PENSTOCK_OK) ThrowLast(code);
    if (!arrays_.Describe(loader_)) {
      penstock_detach(loader_);
      throw nb::python_error();
    }
    if (options.cuda != nullptr) arrays_.TakeFrom(cuda_, stream);
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
    // Until the position is noted: whoever goes on elsewhere from there waits for that.
    const Waiting waits(this);
    nb::object lease = nb::steal(ungiven_.empty() ? Take() : PopUngiven());
    if (!lease.is_valid()) return nullptr;
    penstock_batch* const batch = BatchOf(lease.ptr());
    const bool warns =
        penstock_batch_is_copy(batch) && !penstock_batch_is_joined(batch) && !warned_;
    const bool lacks_rows = is_rank_ && penstock_batch_rows(batch) == 0 && !warned_of_no_rows_;
    PyObject* element = (warns && !WarnOfCopies()) || (lacks_rows && !WarnOfNoRows())
                            ? nullptr
                            : arrays_.MakeElement(batch, lease.ptr());
    if (element == nullptr) {
      KeepUngiven(std::move(lease));
      return nullptr;
    }
    NotePosition(batch);
    return element;
  }

  // Batches that are still in use stay valid.
  void Close() {
    if (loader_ == nullptr) return;
    penstock_loader* loader = loader_;
    loader_ = nullptr;
    DropUngiven();
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
    out["reconnects"] = stats.reconnects;
    out["skipped"] = penstock_skipped(loader_);
    out["joined"] = penstock_joined(loader_);
    return out;
  }

  // As Python has it, which the answers are for.
  nb::object Watched() const {
    const nb::dict counters = Stats();
    return Watching().attr("with_bottleneck")(counters, socket_, name_);
  }
  nb::object Profile(nb::handle path, double seconds) const {
    return Watching().attr("profile")(socket_, name_, path, seconds);
  }
  nb::object Skipped() const {
    return nb::module_::import_("penstock._control").attr("skipped")(socket_, name_);
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

  void LoadStateDict(const nb::dict& state) {
    if (loader_ == nullptr) ThrowError(PENSTOCK_FAILED_PRECONDITION, "the loader is closed");
    if (!state.contains("cursor"))
      ThrowError(PENSTOCK_INVALID_ARGUMENT, "the state of a loader has a cursor");
    const std::string bytes = CursorBytes(state["cursor"]);
    // Of a loader that had given nothing: where this one is, if it has given nothing either.
    if (bytes.empty() && cursor_.empty()) return;
    if (bytes.empty())
      ThrowError(PENSTOCK_FAILED_PRECONDITION,
                 "the state was taken before the first batch, and names no position; a new group "
                 "begins at the first batch");
    penstock_loader* loader = loader_;
    int code;
    {
      const Waiting waits(this);
      const WithoutGil released;
      code = penstock_seek(loader, bytes.data(), static_cast<uint32_t>(bytes.size()));
    }
    if (code != PENSTOCK_OK) ThrowLast(code);
    // By another thread or a signal's handler, while this one waited: what it was may be gone.
    if (loader_ == nullptr) ThrowError(PENSTOCK_FAILED_PRECONDITION, "the loader is closed");
    DropUngiven();
    cursor_ = bytes;
    penstock_stats stats;
    penstock_get_stats(loader, &stats);
    step_ = static_cast<int64_t>(stats.position) - 1;
    nb::module_::import_("penstock._running._changed_code")
        .attr("of_cursor")(socket_, name_, cursor(), 1);
  }

  nb::bytes cursor() const { return nb::bytes(cursor_.data(), cursor_.size()); }
  int64_t step() const { return step_; }
  uint64_t epoch() const { return epoch_; }
  uint32_t rows() const { return rows_; }
  uint32_t valid() const { return valid_; }
  bool redelivered() const { return redelivered_; }
  const std::string& pipeline() const { return name_; }
  const std::string& socket() const { return socket_; }
  std::string Repr() const {
    const std::string where = closed()    ? "closed"
                              : step_ < 0 ? "before the first batch"
                                          : "at step " + std::to_string(step_);
    return "<penstock.Loader of pipeline " + name_ + ", " + where + ", at " + socket_ + ">";
  }
  bool dynamic() const { return dynamic_; }
  bool closed() const { return loader_ == nullptr; }
  int waiting() const { return num_waiting_; }

 private:
  // A call that may wait. Whoever closes the loader meanwhile leaves it to the last of them to
  // detach.
  class Waiting {
   public:
    explicit Waiting(Loader* loader) : loader_(*loader) { ++loader_.num_waiting_; }
    ~Waiting() {
      if (--loader_.num_waiting_ == 0 && loader_.closing_ != nullptr)
        penstock_detach(std::exchange(loader_.closing_, nullptr));
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Loader& loader_;
  };

  // The lease of the next batch, which is not the loader's position yet; null without an error at
  // the end, null with one otherwise.
  PyObject* Take() {
    penstock_batch* batch = nullptr;
    int code = PENSTOCK_TIMEOUT;
    // A ready batch is not worth giving up the GIL, but one that may have to be copied together is.
    // Nor may a thread with the GIL wait for one without it.
    if (!has_own_size_ && num_waiting_ == 1 && penstock_ready(loader_))
      code = penstock_next(loader_, 0, &batch);
    if (code == PENSTOCK_TIMEOUT && !Wait(&code, &batch)) return nullptr;
    if (code == PENSTOCK_END) return nullptr;
    if (code != PENSTOCK_OK) {
      SetError(code, penstock_last_error());
      return nullptr;
    }
    return MakeLease(batch);
  }

  // Threads that took one batch after the other may come by in any order.
  void NotePosition(const penstock_batch* batch) {
    const uint64_t taken = penstock_batch_taken(batch);
    if (taken < num_noted_) return;
    // The same of all batches.
    for (uint32_t i = 0; num_noted_ == 0 && i < penstock_batch_num_tensors(batch); ++i)
      dynamic_ |= penstock_batch_tensor(batch, i)->dynamic != 0;
    num_noted_ = taken + 1;
    step_ = static_cast<int64_t>(penstock_batch_step(batch));
    epoch_ = penstock_batch_epoch(batch);
    rows_ = penstock_batch_rows(batch);
    valid_ = penstock_batch_valid(batch);
    redelivered_ = penstock_batch_redelivered(batch) != 0;
    uint32_t cursor_bytes = 0;
    const void* cursor = penstock_batch_cursor(batch, &cursor_bytes);
    cursor_.assign(static_cast<const char*>(cursor), cursor_bytes);
  }

  PyObject* PopUngiven() {
    PyObject* lease = ungiven_.front();
    ungiven_.pop_front();
    return lease;
  }

  // The next call gives it.
  void KeepUngiven(nb::object lease) {
    if (loader_ == nullptr) return;  // closed meanwhile
    try {
      ungiven_.push_front(lease.ptr());
      lease.release();
    } catch (const std::bad_alloc&) {
      // It is let go of, and the loader's position stays in front of it.
    }
  }

  void DropUngiven() {
    for (PyObject* lease : std::exchange(ungiven_, {})) Py_DECREF(lease);
  }

  // Waits without the GIL, and lets Python handle its signals. False with a Python error set.
  bool Wait(int* code, penstock_batch** batch) {
    // By a clock: a thread also waits for others that wait in the loader.
    const auto begin = std::chrono::steady_clock::now();
    int64_t left_ns = timeout_ns_;
    penstock_loader* loader = loader_;
    while (true) {
      const int64_t slice_ns = std::min(left_ns, kSignalNs);
      {
        const WithoutGil released;
        *code = penstock_next(loader, slice_ns, batch);
      }
      if (*code != PENSTOCK_TIMEOUT) return true;
      if (PyErr_CheckSignals() != 0) return false;
      if (closing_ != nullptr) {
        SetError(PENSTOCK_FAILED_PRECONDITION, "the loader is closed");
        return false;
      }
      if (left_ns != PENSTOCK_FOREVER) {
        const auto waited = std::chrono::steady_clock::now() - begin;
        left_ns = timeout_ns_ - std::chrono::nanoseconds(waited).count();
      }
      if (left_ns <= 0) {
        SetError(PENSTOCK_DEADLINE_EXCEEDED,
                 ("no batch came in " + std::to_string(timeout_ns_ * 1e-9) +
                  " seconds; see what the pipeline does: penstock stats")
                     .c_str());
        return false;
      }
    }
  }

  bool WarnOfNoRows() {
    warned_of_no_rows_ = true;
    return PyErr_WarnEx(PyExc_RuntimeWarning,
                        "this rank has no row of a batch, which has fewer rows than there are "
                        "ranks: a last batch, most likely. drop_remainder=True leaves it out, "
                        "remainder=\"wrap\" fills it up",
                        1) == 0;
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

  static nb::module_ Watching() { return nb::module_::import_("penstock._running._watching"); }

  const std::string name_, socket_;
  const nb::object cuda_;  // where batches are taken from a device's ring; None: they are not
  penstock_loader* loader_ = nullptr;
  penstock_loader* closing_ = nullptr;  // closed while a thread waited in it
  int num_waiting_ = 0;
  int64_t timeout_ns_ = PENSTOCK_FOREVER;
  ArrayFactory arrays_;
  // The leases of batches that were taken and could not be given, since a warning was an error, or
  // there was no memory; the oldest first.
  std::deque<PyObject*> ungiven_;
  std::string cursor_;      // empty before the first batch
  uint64_t num_noted_ = 0;  // batches whose position has been noted, or is behind one that has
  int64_t step_ = -1;
  uint64_t epoch_ = 0;
  uint32_t rows_ = 0;
  uint32_t valid_ = 0;
  bool redelivered_ = false;
  bool dynamic_ = false;
  bool warned_ = false;
  bool is_rank_ = false;
  bool warned_of_no_rows_ = false;
  bool has_own_size_ = false;
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
  penstock_python::DefineDevice(m);
  penstock_python::DefineControl(m);
  penstock_python::DefineRecords(m);
  m.attr("Strings") = nb::borrow(penstock_python::StringsType());
  m.def("version", &penstock_version, "The release, such as \"0.1.0\".");
  m.def("abi_version", &penstock_abi_version, "The version of the ring's ABI.");
  m.def(
      "cursor_bytes",
      [](nb::handle cursor) {
        const std::string bytes = penstock_python::CursorBytes(cursor);
        return nb::bytes(bytes.data(), bytes.size());
      },
      nb::arg("cursor").none(), "A cursor, which is bytes or their hex text, as bytes.");
  m.def("default_socket", &penstock_default_socket, "The socket that attach() uses by default.");
  m.def(
      "writable",
      [](nb::handle array) {
        PyObject* made = penstock_python::MakeWritable(array.ptr());
        if (made == nullptr) throw nb::python_error();
        return nb::steal(made);
      },
      nb::arg("array"),
      "The same array over memory that this process may write, a page of which becomes its own "
      "when it is written; for an "
      "array of a batch, and None for any other.");
  nb::class_<Loader>(m, "Loader", nb::type_slots(penstock_python::loader_slots),
                     "Batches of one pipeline, in order; see penstock.attach.")
      .def(nb::init<const std::string&, const std::optional<std::string>&, const std::string&,
                    const std::optional<double>&, const std::string&, const std::optional<int64_t>&,
                    const std::optional<int64_t>&, int64_t, int64_t, const std::string&,
                    const nb::object&, double, const std::string&, double,
                    const std::optional<std::string>&, bool, nb::object, uintptr_t,
                    const std::optional<int64_t>&>(),
           nb::arg("name"), nb::arg("socket").none() = nb::none(), nb::arg("group") = "default",
           nb::arg("timeout").none() = nb::none(), nb::arg("mode") = "broadcast",
           nb::arg("rank").none() = nb::none(), nb::arg("world_size").none() = nb::none(),
           nb::arg("replica") = 0, nb::arg("replicas") = 1, nb::arg("delivery") = "at_least_once",
           nb::arg("cursor").none() = nb::none(), nb::arg("reconnect") = 60.0,
           nb::arg("slow") = "block", nb::arg("lag") = 60.0,
           nb::arg("consumer").none() = nb::none(), nb::arg("take_over") = false,
           nb::arg("cuda").none() = nb::none(), nb::arg("stream") = 0,
           nb::arg("batch_size").none() = nb::none())
      .def("skipped", &Loader::Skipped,
           "What the pipeline has left out by now (ignore_errors, damage), in every pass anew: a "
           "penstock.Skipped with the count and the first 1,000 places.")
      .def("stats", &Loader::Watched,
           "What this loader has seen: batches, bytes, copies (batches beyond its share of the "
           "ring), joined (batches of rows from several of the pipeline's), waits, wait_seconds, "
           "leases and more; and what holds the pipeline up: \"bottleneck\" is a stage's name, "
           "\"consumer\" or \"reading\", and \"sentence\" says it in words. The daemon is asked "
           "for these once a second at most; they are \"\" where it does not tell.")
      .def("_counters", &Loader::Stats, "The same of this loader alone: nobody is asked.")
      .def("profile", &Loader::Profile, nb::arg("path"), nb::arg("seconds") = 1.0,
           "Writes what each of the pipeline's workers does for so many seconds, from now on, to a "
           "file for ui.perfetto.dev. It goes on beside the loop over the batches: wait() of what "
           "this returns, or the end of a `with` over that, waits for the file.")
      .def(
          "state_dict", &Loader::StateDict,
          "The position behind the batch taken last, for a checkpoint: {\"cursor\": bytes, "
          "\"step\": int}. For JSON, which has no bytes: json.dumps(state, default=bytes.hex), and "
          "load_state_dict(json.loads(text)). Before the first batch the cursor is empty, and the "
          "step is the one "
          "before the first that this loader will take: -1 at the start of the stream.")
      .def("load_state_dict", &Loader::LoadStateDict, nb::arg("state"),
           "Goes to a position of state_dict(), of this loader or of another one over the same "
           "stream: the next batch is the one behind it. The cursor is bytes, or their hex text. "
           "Batches in use stay valid. When the "
           "daemon does not answer in time (the timeout of attach()) it raises UnavailableError, "
           "and the next batch is the one behind it all the same.")
      .def("close", &Loader::Close, "Leaves. Arrays that are still in use stay valid.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](Loader& self, nb::handle, nb::handle, nb::handle) { self.Close(); },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none())
      .def("__len__", &Loader::Length,
           "The batches of the whole stream, from step 0 to its end, wherever this loader begins: "
           "its steps or, with a `batch_size` of attach(), batches of that size, of which the last "
           "of a pass may be shorter. TypeError where they are not known, with the reason: the "
           "stream has no end, its files have no index (`penstock index`), or only reading tells; "
           "and in a split group with a `batch_size`.")
      // An object with a length is false when that is zero.
      .def("__bool__", [](Loader&) { return true; })
      .def_prop_ro("step", &Loader::step, "The step of the batch taken last; see state_dict.")
      .def_prop_ro("pipeline", &Loader::pipeline, "The pipeline's name.")
      .def_prop_ro("socket", &Loader::socket,
                   "The daemon's socket, for `penstock --socket`; of a Dataset's iterator that of "
                   "the private daemon.")
      .def("__repr__", &Loader::Repr)
      .def(
          "_repr_html_",
          [](nb::handle self) {
            return nb::module_::import_("penstock._show").attr("of_loader")(self);
          },
          "A table of its counters, for notebooks.")
      .def_prop_ro("cursor", &Loader::cursor,
                   "The position behind it, as bytes: with it a pipeline goes on.")
      .def_prop_ro("epoch", &Loader::epoch, "The epoch of its first row.")
      .def_prop_ro("rows", &Loader::rows, "Its number of rows.")
      .def_prop_ro(
          "valid", &Loader::valid,
          "How many of them, from the first on, are elements: fewer than rows only where the "
          "spec fills a last batch up (remainder: PAD).")
      .def_prop_ro("redelivered", &Loader::redelivered,
                   "Whether another consumer of the split group held it when it died: it may have "
                   "been worked on.")
      .def_prop_ro("_dynamic", &Loader::dynamic,
                   "Whether tensors have axes that differ from batch to batch; known behind the "
                   "first one.")
      .def_prop_ro("closed", &Loader::closed)
      .def_prop_ro("_waiting", &Loader::waiting, "How many threads are in a call that waits.");
}
