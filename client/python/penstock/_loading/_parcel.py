"""Objects of this process on their way to worker processes.

Whatever pickle takes, and by cloudpickle functions and classes of `__main__`, of notebooks and local ones, by value. Arrays and tensors lie beside the
pickle, so that workers map them and none copies. What cannot be pickled is refused by the way that leads to it.
"""

import ctypes
import io
import mmap
import os
import pickle
import sys
import warnings

import numpy as np

from penstock._loading import _payload

# Smaller arrays travel in the function's pickle (_python.py).
_MIN_MAPPED_BYTES = 16 << 10


class Parcel:
    """Objects that are pickled together: what they have in common is one object at the other end, too.

    Attributes:
      text: the pickle.
      beside: the bytes of arrays and tensors, as arrays of uint8.
    """

    def __init__(self, text, beside):
        self.text = text
        self.beside = beside

    def __reduce__(self):
        return Parcel, (self.text, self.beside)

    def digest(self):
        """A text that tells it from others."""
        import hashlib
        import zlib

        sums = [zlib.crc32(memory, memory.nbytes) for memory in self.beside]
        return hashlib.sha256(self.text + repr(sums).encode()).hexdigest()

    def load(self):
        """The objects, in a tuple. Arrays and tensors are views of what was packed."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given buffer is not writable")
            return pickle.loads(self.text, buffers=[memoryview(memory) for memory in self.beside])

    def load_in_worker(self):
        """The same in a worker process, which may write into them: a page that it writes is its own then."""
        return pickle.loads(self.text, buffers=[_writable(memory) for memory in self.beside])


def _writable(memory):
    if memory.nbytes < _MIN_MAPPED_BYTES:
        return bytearray(memory)
    # A part of the function's file, which _worker/_function.py has mapped privately.
    view = (ctypes.c_uint8 * memory.nbytes).from_address(memory.ctypes.data)
    view.held = memory
    return view


def pack(**parts):
    """A Parcel of the values.

    Raises:
      TypeError: one cannot be pickled; says what of it, by its name, and what to do.
    """
    beside = []
    file = io.BytesIO()
    try:
        _pickler(file, beside.append).dump(tuple(parts.values()))
    except Exception as error:
        raise _refused(parts, error) from error
    return Parcel(file.getvalue(), [np.frombuffer(buffer.raw(), np.uint8) for buffer in beside])


def _pickler(file, take_buffer):
    try:
        from cloudpickle import Pickler
    except ImportError:
        from pickle import Pickler

    class ToWorkers(Pickler):
        def reducer_override(self, value):
            if isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO)) and value not in (sys.stdin, sys.stdout, sys.stderr):
                # cloudpickle would read it all, and give a copy of what stood there.
                raise TypeError("an open file belongs to its process")
            if isinstance(value, np.memmap):
                path = _whole_file_of(value)
                if path is None:
                    return np.ascontiguousarray(value).view(np.ndarray).__reduce_ex__(5)
                return _mapped, (path, value.dtype, value.offset, value.shape, "C" if value.flags.c_contiguous else "F")
            found = _payload.reduced(value)
            if found is not NotImplemented or Pickler is pickle.Pickler:
                return found
            return super().reducer_override(value)

    return ToWorkers(file, 5, buffer_callback=take_buffer)


def _whole_file_of(array):
    """The path of the file that a memmap shows as it was opened; None where it is a part of it, or has been written to privately."""
    if array.mode == "c" or array.filename is None or not isinstance(array.base, mmap.mmap) or not os.path.exists(array.filename):
        return None
    is_whole = array.flags.c_contiguous or array.flags.f_contiguous
    return os.path.abspath(array.filename) if is_whole else None


def _mapped(path, dtype, offset, shape, order):
    return np.memmap(path, dtype, "c", offset, shape, order)


def _pickles(value):
    try:
        _pickler(io.BytesIO(), lambda _: None).dump(value)
    except Exception:
        return False
    return True


def _refused(parts, error):
    """Names what cannot be pickled, by the way that leads to it."""
    for name, value in parts.items():
        if not _pickles(value):
            path, found = _innermost(name, value, set())
            kind = f"{type(found).__module__}.{type(found).__qualname__}"
            return TypeError(
                f"{path} is a {kind}, which cannot be given to worker processes ({error}). {_remedy(kind)}"
            )
    return TypeError(f"{', '.join(parts)} cannot be pickled together: {error}")


def _remedy(kind):
    if kind in ("builtins.function", "builtins.type"):
        return 'Functions and classes that are in no module go by cloudpickle: pip install "penstock[python]"'
    if kind.startswith(("h5py.", "lmdb.", "builtins.Environment", "_io.", "sqlite3.")):
        return "Keep the path, and open it in the worker: in __getitem__ where it is not open yet, or in worker_init_fn"
    if kind.startswith("multiprocessing."):
        return "Workers are no children of this process, and inherit nothing"
    if kind.startswith(("_thread.", "threading.")):
        return "Leave locks and threads out of what __getstate__ returns"
    return "Leave it out of what __getstate__ returns, and make it again in the worker"


def _innermost(path, value, seen):
    """Way and value of the innermost part that cannot be pickled."""
    seen.add(id(value))
    for name, inner in _parts(value):
        if id(inner) not in seen and not _pickles(inner):
            return _innermost(path + name, inner, seen)
    return path, value


def _parts(value):
    import inspect

    if isinstance(value, dict):
        return [(f"[{key!r}]", inner) for key, inner in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{place}]", inner) for place, inner in enumerate(value)]
    if inspect.ismethod(value):
        return [(".__self__", value.__self__)]
    if inspect.isfunction(value):
        closure = inspect.getclosurevars(value)
        return [(f" uses {name}", inner) for name, inner in (*closure.nonlocals.items(), *closure.globals.items())]
    return [(f".{name}", inner) for name, inner in getattr(value, "__dict__", {}).items()]
