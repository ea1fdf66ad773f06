"""Objects of this process on their way to worker processes.

Whatever pickle takes, and by cloudpickle functions and classes of `__main__`, of notebooks and local ones, by value. Arrays and tensors lie beside the
pickle, so that workers map them and none copies. What cannot be pickled is refused by the way that leads to it.
"""

import io
import pickle
import sys

import numpy as np

from penstock._loading import _payload


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

    def load(self):
        """The objects, in a tuple. Arrays are views."""
        return pickle.loads(self.text, buffers=[memoryview(memory) for memory in self.beside])


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
            found = _payload.reduced(value)
            if found is not NotImplemented or Pickler is pickle.Pickler:
                return found
            return super().reducer_override(value)

    return ToWorkers(file, 5, buffer_callback=take_buffer)


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
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        return 'Functions and classes that are in no module need cloudpickle: pip install "penstock[python]"'
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
