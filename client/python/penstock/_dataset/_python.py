"""Python functions as a stage: how a function travels to worker processes, and what is known of its results beforehand."""

import functools
import os
import pickle
import sys
import weakref

import numpy as np

from penstock import _errors, _structure
from penstock._dataset._arguments import at_least, optional
from penstock._dataset._chain import ASK
from penstock._dtypes import string
from penstock._options import TensorSpec
from penstock._running import _daemon, _offering
from penstock._running._iterator import DatasetIterator
from penstock._spec import _textproto
from penstock._spec._lines import user_line
from penstock._spec._stage import Code, Seed, Stage
from penstock._tracing import _draws

# Arrays of a closure below this travel in the pickle itself.
_MIN_PART_BYTES = 16 << 10
_NAMES = {np.dtype(name).name for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()}


class FunctionFile:
    """A pickled function in a sealed memory file, with all that a worker needs to start (server/python/function_file.h).

    Arrays of its closure lie there once, and all workers map them.

    Attributes:
      code: a hash of the pickle, by which people see that the function has changed.
      is_whole: nothing of it lies beside the pickle, so that the hash is of all of it.
      file: the memory file's descriptor.
      header: how a worker is started.
    """

    is_function = True

    def __init__(self, function):
        data, buffers = pickled(function)
        import hashlib

        self.code = hashlib.sha256(data).hexdigest()[:16]
        self.is_whole = not buffers
        self.file, self.header = _written([data, *buffers], self.code)
        # As _arrays.MemoryArray's: not in a forked child.
        weakref.finalize(self, os.close, self.file).atexit = False
        _offering.known(self)

    def spec_value(self):
        return f"/proc/{os.getpid()}/fd/{self.file}"


def _written(parts, code):
    """The descriptor of a memory file with these parts, and its header."""
    import fcntl
    import json

    from penstock._worker._function import MAGIC

    offsets, offset = [], 0
    for part in parts:
        offsets.append(offset)
        offset += -(-_size(part) // 64) * 64
    # The parts' places count from the header's end, whose length depends on their digits.
    room = 4096
    while True:
        described = _header([[room + offset, _size(part)] for offset, part in zip(offsets, parts)], code)
        header = json.dumps(described).encode()
        if len(MAGIC) + 8 + len(header) <= room:
            break
        room *= 2
    fd = os.memfd_create("penstock-function", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)  # novermin: numbers, not types
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(MAGIC + len(header).to_bytes(8, "little") + header)
            for offset, part in zip(offsets, parts):
                file.seek(room + offset)
                file.write(part)
            # Vectors may be loaded behind the last one.
            file.truncate(room + offsets[-1] + _size(parts[-1]) + 64)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)  # novermin
    except BaseException:
        os.close(fd)
        raise
    return fd, described


def _size(part):
    return memoryview(part).nbytes


def _header(parts, code):
    """How this interpreter is started again, and where the function lies."""
    import subprocess

    folder = _daemon._working_folder() or ""
    environment = [f"{name}={value}" for name, value in os.environ.items()]
    return {
        "code": code,
        "program": sys.executable,
        "flags": subprocess._args_from_interpreter_flags(),
        "script": os.path.join(os.path.dirname(os.path.abspath(_errors.__file__)), "_worker", "_start.py"),
        "folder": folder,
        # JSON has no bytes that are no text.
        "environment": [variable for variable in environment if _is_text(variable)],
        "path": [entry or folder for entry in sys.path if isinstance(entry, str)],
        "parts": parts,
    }


def _is_text(variable):
    try:
        return variable.encode() is not None
    except UnicodeEncodeError:
        return False


# --- pickling -----------------------------------------------------------------------------------


def _cloudpickle():
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def pickled(function):
    """The pickle of a function, and the large arrays of it as buffers.

    Raises:
      TypeError: something of it cannot be pickled; it says what.
    """
    pickler = _cloudpickle()
    function, whole = (function[0], function) if isinstance(function, tuple) else (function, function)
    if pickler is None and (why := _needs_cloudpickle(function)):
        raise TypeError(
            f"{name_of(function)} {why}, which travels to worker processes by the package cloudpickle: "
            'pip install cloudpickle (or "penstock[python]"), or define it in a module that can be imported'
        )
    buffers = []

    def keep(buffer):
        raw = buffer.raw()
        if raw.nbytes < _MIN_PART_BYTES:
            return True
        buffers.append(raw)
        return False

    try:
        return (pickler or pickle).dumps(whole, protocol=5, buffer_callback=keep), buffers
    except Exception as error:
        raise TypeError(f"{name_of(function)} cannot be pickled for worker processes: {_guilty(function, pickler or pickle) or error}") from error


def _needs_cloudpickle(function):
    """Why plain pickle would not do, in words; or None."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    kind = function if hasattr(function, "__qualname__") else type(function)
    module, name = getattr(kind, "__module__", None), kind.__qualname__
    if "<lambda>" in name:
        return "is a lambda"
    if "<locals>" in name:
        return "is defined inside of a function"
    return "is defined in __main__" if module == "__main__" else None


def _guilty(function, pickler):
    """Which value that the function uses cannot be pickled, in words; or None."""
    for name, value in _draws._values_of(function):
        try:
            pickler.dumps(value, protocol=5, buffer_callback=lambda buffer: None)
        except Exception as error:
            return f"it uses {name}, a {type(value).__module__}.{type(value).__qualname__}: {error}; make it inside of the function, at its first call"
    return None


def name_of(function):
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name.replace("<locals>.", "")


# --- outputs ------------------------------------------------------------------------------------


class Declared:
    """What the function returns, as its author says: a nest of TensorSpecs."""

    def __init__(self, output, name):
        def is_spec(value):
            return hasattr(value, "shape") and hasattr(value, "dtype")

        structure, specs = _structure.flatten(output, is_spec, f"the output of {name}")
        self.structure = structure
        self.specs = {path: TensorSpec(spec.shape, spec.dtype) for path, spec in zip(_structure.paths(structure), specs)}
        self._outputs = [output_of(path, spec) for path, spec in self.specs.items()]

    def outputs(self):
        return self._outputs


def output_of(path, spec):
    dtype = getattr(spec.dtype, "name", spec.dtype)
    if spec.dtype is not string and dtype not in _NAMES:
        raise TypeError(f"output {path} is of type {dtype}, which no Python function's output has")
    shape = [-1 if size is None else int(size) for size in spec.shape]
    return _textproto.Message(("name", path), ("dtype", dtype), ("shape", shape or None))


class Learned:
    """What the function returns for the first element: found out by a worker when a plan is to be made."""

    def __init__(self, dataset, stage_of, name):
        self._dataset = dataset
        self._stage_of = stage_of  # a stage of this function that describes
        self._name = name
        self._known = None

    @functools.cached_property
    def _description(self):
        text = self._first()
        if text is None:
            raise _errors.InvalidArgumentError(f"the dataset has no element to learn from what {self._name} returns: declare it (map(…, python=True, output=…))")
        import json

        return json.loads(text)

    def _first(self):
        """The description of the first element; None where there is none."""
        if self._dataset._window is not None:
            raise _errors.InvalidArgumentError(f"what {self._name} returns is not known inside of a window: declare it (map(…, python=True, output=…))")
        first = self._dataset.take(1)
        with DatasetIterator(first._like((*first._stages, self._stage_of()), None), first_pass=True) as elements:
            for element in elements:
                return np.asarray(element).item()
        return None

    @property
    def structure(self):
        return _structure.from_json(self._description["structure"])

    def outputs(self):
        return [
            _textproto.Message(("name", output["name"]), ("dtype", output["dtype"]), ("shape", output["shape"] or None))
            for output in self._description["outputs"]
        ]


class Lazily:
    """A field's value that is found when a spec is written."""

    def __init__(self, find):
        self.spec_value = find


# --- the stage ----------------------------------------------------------------------------------

# What the ops of Python functions have in common: the fields of the message PythonFunction.
_OF_FUNCTION = frozenset(
    ("name", "file", "version", "output", "structure", "timeout_ms", "threads", "seed", "unseeded", "code", "describes", "casts")
)


def stage_of(op, fields, name=None, line=None):
    """The stage of a Python function.

    Args:
      fields: those of the op, and those of its function, as fields_of() gives them, in any order.
    """
    function = _textproto.Message(*(field for field in fields if field[0] in _OF_FUNCTION))
    return Stage(op, [("function", function), *(field for field in fields if field[0] not in _OF_FUNCTION)], name, line)


def fields_of(
    op, function, constants=None, version="", *, timeout_ms=None, workers=None, max_rows_per_worker=None, threads=None, seed=None, seeds=True
):  # fmt: skip
    """What a stage says of a Python function (stage_of): its name, and two lists of fields, of which a stage that describes has the first alone.

    Args:
      constants: a dict from the places of arguments that are constants to their values.
    """
    if not callable(function) and op != "from_generator":
        raise TypeError(f"{op} takes a function, not a {type(function).__name__}")
    file = FunctionFile((function, constants) if constants else function)
    shown = name_of(function)
    limits = [
        ("workers", None if workers is None else at_least(1, workers, "workers")),
        ("max_rows_per_worker", None if max_rows_per_worker is None else at_least(1, max_rows_per_worker, "max_rows_per_worker")),
        ("timeout_ms", None if timeout_ms is None else at_least(1, timeout_ms, "timeout_ms")),
        ("threads", None if threads is None else at_least(1, threads, "threads")),
    ]
    common = [("name", shown), ("file", file), ("version", str(version) or None), *limits, ("unseeded", None if seeds else True)]
    return shown, common, [("seed", Seed(optional(seed, "seed"))), ("code", Code(file.code))]


def map_by_python(dataset, function, output, version, timeout_ms, workers, max_rows_per_worker, threads, seed, seeds, name):
    """The dataset of what the function returns for each element (Dataset.map)."""
    shown, common, of_draws = fields_of(
        "map", function, {}, version, timeout_ms=timeout_ms, workers=workers, max_rows_per_worker=max_rows_per_worker, threads=threads, seed=seed, seeds=seeds
    )  # fmt: skip
    line = user_line()

    def describing():
        # One worker is enough, and its draws are nobody's.
        fields = [(field, value) for field, value in common if field != "workers"]
        told = _textproto.Message(("name", "value"), ("dtype", "string"))
        return stage_of("python", [*fields, ("workers", 1), ("describes", True), ("output", told), ("structure", "null")], None, line)

    known = Learned(dataset, describing, shown) if output is None else Declared(output, shown)
    fields = [
        *common,
        *of_draws,
        ("output", Lazily(known.outputs)),
        ("structure", Lazily(lambda: _structure.to_json(known.structure))),
    ]
    structure = ASK if output is None else known.structure
    return dataset._like((*dataset._stages, stage_of("python", fields, name, line)), structure, dataset._count)
