"""The process that computes the rows of a Python function for penstockd (server/python/README.md).

It is started by its path, and imports the standard library and NumPy alone, so that it is there in a tenth of a second; the rest is what the
function needs. Descriptors: 3 the function's file, 4 inputs, 5 outputs, 6 the socket, 7 where its stack goes. sys.argv: this file, the bytes
of the configuration, the daemon's process.

    daemon ── kWork: tray, sheet, rows ──► for each row: progress, seeds, function, result into the outputs ── kMade ──► daemon
"""

import json
import mmap
import os
import struct
import sys

FUNCTION, INPUTS, OUTPUTS, SOCKET, STACK = range(3, 8)
TRAY_STRIDE = 1 << 40
WORK, LEAVE, READY, CANNOT_LOAD, MADE, FAILED = 1, 2, 16, 17, 18, 19
MESSAGE = struct.Struct("=IIQQQ")
MAGIC = b"penstock python\n"
MAX_TEXT_BYTES = 16 << 10
# Rows of a variable size are copied whole by the daemon, which counts their bytes in 32 bits.
MAX_ROW_BYTES = (1 << 32) - 1


TYPES = {
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "string",
}  # fmt: skip


class Refused(Exception):
    """A result that is none; its text is the row's error."""


# --- the function -------------------------------------------------------------------------------


def read_header(file):
    head = os.pread(file, len(MAGIC) + 8, 0)
    (size,) = struct.unpack_from("=Q", head, len(MAGIC))
    return json.loads(os.pread(file, size, len(head)))


def load(file, header):
    """The function: its pickle's large arrays stay in the file, which all workers map once. They are read-only; who writes all the same, as a torch
    tensor over them may, writes into a page of its own."""
    import pickle

    data = memoryview(mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)).toreadonly()  # novermin
    parts = [data[offset : offset + size] for offset, size in header["parts"]]
    return pickle.loads(parts[0], buffers=parts[1:])


def limit_threads(threads, sets):
    """One thread each, as there is a process for every processor, unless the user has set it (`sets`), or the environment has."""
    for name in (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS",
        "RAYON_NUM_THREADS",
    ):  # fmt: skip
        if sets:
            os.environ[name] = str(threads)
        else:
            os.environ.setdefault(name, str(threads))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


_LIMITED = set()


def limit_threads_of_modules(threads):
    """The same of what the function has imported by now."""
    for name, call in (("cv2", "setNumThreads"), ("torch", "set_num_threads")):
        module = sys.modules.get(name)
        if module is not None and name not in _LIMITED and hasattr(module, call):
            _LIMITED.add(name)
            getattr(module, call)(0 if name == "cv2" and threads == 1 else threads)


# --- memory -------------------------------------------------------------------------------------


class Tray:
    """The inputs and outputs of one tray, mapped as far as they are used."""

    def __init__(self, number):
        self.offset = (number + 1) * TRAY_STRIDE
        self.inputs = self.outputs = None

    def reach_inputs(self, size):
        if self.inputs is None or len(self.inputs) < size:
            # Private: a function may write into what it is given.
            self.inputs = self._map(INPUTS, size, mmap.MAP_PRIVATE)

    def reach_outputs(self, size):
        if self.outputs is None or len(self.outputs) < size:
            self.outputs = self._map(OUTPUTS, size, mmap.MAP_SHARED)

    def _map(self, file, size, flags):
        size = max(1 << 20, 1 << (size - 1).bit_length())
        return mmap.mmap(file, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=self.offset)  # novermin

    def drop_inputs(self, size):
        """What the function has written over them goes, and the next sheet is seen."""
        self.inputs.madvise(mmap.MADV_DONTNEED, 0, min(len(self.inputs), -(-size // mmap.PAGESIZE) * mmap.PAGESIZE))


def aligned(offset):
    return (offset + 63) & ~63


def places(features, rows):
    """Where each feature of so many rows begins, with its sizes where its rows have their own; and what lies behind them all."""
    found, offset = [], 0
    for feature in features:
        offset = aligned(offset)
        if feature.row_bytes is not None:
            found.append((offset, None))
            offset += rows * feature.row_bytes
        else:
            sizes = aligned(offset + rows * 16)
            found.append((offset, sizes))
            offset = sizes + rows * 8 * len(feature.shape)
    return found, aligned(offset)


class Feature:
    """A feature's name, type and shape.

    Attributes:
      row_bytes: of a row, where all have as many; else None.
      casts: whether NumPy's numbers of another type become its own.
    """

    def __init__(self, np, described, casts=False):
        self.name = described["name"]
        self.casts = casts
        self.is_string = described["dtype"] == "string"
        self.dtype = None if self.is_string else np.dtype(described["dtype"])
        self.shape = tuple(described["shape"])
        self.is_fixed = -1 not in self.shape
        self.row_bytes = None
        if self.is_fixed and not self.is_string:
            self.row_bytes = self.dtype.itemsize
            for size in self.shape:
                self.row_bytes *= size

    def __str__(self):
        sizes = ", ".join("None" if size == -1 else str(size) for size in self.shape)
        return f"{'string' if self.is_string else self.dtype.name} ({sizes}{',' if len(self.shape) == 1 else ''})"


# --- what the function is given -----------------------------------------------------------------


def column(np, feature, memory, place, rows):
    """The rows of a feature, in order: NumPy's arrays over the memory, or bytes."""
    values, sizes = place
    if feature.row_bytes is not None:
        return np.ndarray((rows, *feature.shape), feature.dtype, memory, values)
    table = np.ndarray((rows, 2), np.uint64, memory, values).tolist()
    axes = np.ndarray((rows, len(feature.shape)), np.int64, memory, sizes).tolist()
    if not feature.is_string:
        return [np.ndarray(shape, feature.dtype, memory, offset) for shape, (offset, _) in zip(axes, table)]
    if not feature.shape:
        return [memory[offset : offset + size] for offset, size in table]
    return [strings(np, memory[offset : offset + size], shape) for shape, (offset, size) in zip(axes, table)]


def strings(np, data, shape):
    array = np.empty(shape, object)
    lengths = np.frombuffer(data, np.uint32, array.size).tolist()
    offset, flat = 4 * array.size, []
    for length in lengths:
        flat.append(data[offset : offset + length])
        offset += length
    array.reshape(-1)[:] = flat
    return array


def filler(structure):
    """A function of an iterator over the tensors of an element: the element."""
    if structure is None:
        return next
    if isinstance(structure, dict):
        parts = [(key, filler(inner)) for key, inner in structure.items()]
        return lambda tensors: {key: part(tensors) for key, part in parts}
    parts = [filler(inner) for inner in structure]
    return lambda tensors: tuple([part(tensors) for part in parts])


def caller(function, structure):
    """A function of a row's tensors, as a tuple, that calls the user's as Dataset.map does: a tuple's parts are several arguments."""
    if structure is None:
        return lambda row: function(row[0])
    if isinstance(structure, dict):
        if all(inner is None for inner in structure.values()):
            keys = list(structure)
            return lambda row: function(dict(zip(keys, row)))
        fill = filler(structure)
        return lambda row: function(fill(iter(row)))
    if all(inner is None for inner in structure):
        return lambda row: function(*row)
    fill = filler(structure)
    return lambda row: function(*fill(iter(row)))


def with_tensors(np, function):
    """The function with arguments as tf.py_function gives them: they have a method numpy()."""

    class Tensor(np.ndarray):
        def numpy(self):
            return self.view(np.ndarray) if self.ndim else self[()]

    def tensor(value):
        if isinstance(value, bytes):
            array = np.empty((), object)
            array[()] = value
            return array.view(Tensor)
        return np.asarray(value).view(Tensor)

    return lambda *values: function(*map(tensor, values))


def with_constants(function, constants):
    """The function of its other arguments; `constants` is a dict from places to values."""
    places = sorted(constants)

    def call(*values):
        values = list(values)
        for place in places:
            values.insert(place, constants[place])
        return function(*values)

    return call


# --- what it returns ----------------------------------------------------------------------------


def with_list(function):
    """The function with a tuple of its outputs as result, as TensorFlow takes it: a list or a tuple of them, or the only one."""

    def call(*values):
        made = function(*values)
        return tuple(made) if isinstance(made, (list, tuple)) else (made,)

    return call


def elements_of(made):
    if made is None or isinstance(made, (dict, str, bytes)) or not hasattr(made, "__iter__"):
        raise Refused(f"{described(made)}, not an iterable of elements; a generator yields them")
    return made


def flattener(structure, path=""):
    """A function that appends an element's tensors to a list, in order; Refused where the element has another structure."""
    where = f" at {path}" if path else ""
    if structure is None:

        def add_tensor(value, tensors):
            if value is None:
                raise Refused(f"None{where}; does it lack a return?")
            if isinstance(value, dict):
                raise Refused(f"a dict{where}, not a tensor")
            tensors.append(value)

        return add_tensor
    if isinstance(structure, dict):
        parts = {key: flattener(inner, f"{path}/{key}" if path else str(key)) for key, inner in structure.items()}

        def add_dict(value, tensors):
            if not isinstance(value, dict):
                raise Refused(f"{described(value)}{where}, not a dict of {', '.join(map(repr, parts))}")
            if value.keys() != parts.keys():
                raise Refused(f"a dict of {', '.join(map(repr, value)) or 'nothing'}{where}, not of {', '.join(map(repr, parts))}")
            for key, part in parts.items():
                part(value[key], tensors)

        return add_dict
    parts = [flattener(inner, f"{path}/{i}" if path else str(i)) for i, inner in enumerate(structure)]

    def add_tuple(value, tensors):
        if not isinstance(value, (tuple, list)):
            raise Refused(f"{described(value)}{where}, not a tuple of {len(parts)}")
        if len(value) != len(parts):
            raise Refused(f"a {type(value).__name__} of {len(value)}{where}, not a tuple of {len(parts)}")
        for inner, part in zip(value, parts):
            part(inner, tensors)

    return add_tuple


def described(value):
    if value is None:
        return "None"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{getattr(value.dtype, 'name', value.dtype)} {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def as_array(np, value, name):
    """An array of what the function returned, and whether its type is its own: Python's numbers, and lists of them, take that of the output."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value), True
    if isinstance(value, (str, bytes)):
        array = np.empty((), object)
        array[()] = value
        return array, True
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        if value.device.type != "cpu":
            raise Refused(f"a torch tensor on {value.device} for {name!r}: return tensor.cpu()")
        return value.detach().resolve_conj().resolve_neg().numpy(), True
    if value is None or isinstance(value, (dict, set)) or hasattr(value, "__next__"):
        raise Refused(f"{described(value)} for {name!r}, not a tensor")
    try:
        array = np.asarray(value)
    except Exception as error:
        raise Refused(f"{described(value)} for {name!r}, of which NumPy makes no array ({error})") from None
    if array.dtype == object:
        raise Refused(f"{described(value)} for {name!r}, of which NumPy makes no array of numbers")
    return array, not isinstance(value, (bool, int, float, list, tuple))


def checked(np, feature, value):
    """The value as an array of the feature's type and shape, or Refused."""
    array, is_typed = as_array(np, value, feature.name)
    if feature.is_string:
        if array.dtype.kind not in "OSUT":
            raise Refused(f"{described(array)} for {feature.name!r}, not {feature}")
        array = array.astype(object)
    elif array.dtype != feature.dtype:
        same_bytes = array.dtype.newbyteorder("=") == feature.dtype
        if feature.casts and is_typed and array.dtype.kind in "biuf":
            same_bytes = np.can_cast(array.dtype, feature.dtype, "same_kind")
        if not same_bytes and (is_typed or (can_hold := fits(np, array, feature.dtype)) is None):
            hint = f"; return array.astype(np.{feature.dtype.name})" if is_typed else ""
            raise Refused(f"{described(array)} for {feature.name!r}, not {feature}{hint}")
        array = array.astype(feature.dtype) if same_bytes else can_hold
    if array.ndim != len(feature.shape) or any(size not in (-1, found) for size, found in zip(feature.shape, array.shape)):
        raise Refused(f"{described(array)} for {feature.name!r}, not {feature}")
    return array


def fits(np, array, dtype):
    """Python's numbers as that type; None where it does not hold them."""
    if not array.size:
        return array.astype(dtype)  # an empty list says nothing of its type
    if array.dtype.kind == "b" and dtype.kind != "b" or array.dtype.kind == "f" and dtype.kind != "f":
        return None
    if dtype.kind in "iu" and array.size:
        info = np.iinfo(dtype)
        if array.min() < info.min or array.max() > info.max:
            return None
    if dtype.kind == "b" and array.dtype.kind != "b":
        return None
    return array.astype(dtype)


class Output:
    """Writes one output's rows into a tray.

    Attributes:
      of_each: where a function yields elements, the feature of each of them.
    """

    def __init__(self, np, described, casts, yields):
        self.np = np
        self.feature = Feature(np, described, casts)
        self.packs = "packed" in described
        if self.packs:
            described = {"name": described["name"], "dtype": described["packed"], "shape": described["packed_shape"]}
        elif yields:
            described = {**described, "shape": described["shape"][1:]}
        self.of_each = Feature(np, described, casts)

    def joined(self, values):
        """A row of the checked values of what a function has yielded."""
        np = self.np
        if self.packs:
            values = [np.array(value.shape, np.int64).tobytes() + value.tobytes() for value in values]
        elif self.of_each.shape:
            return np.stack(values) if values else np.empty((0, *self.of_each.shape), self.of_each.dtype or object)
        row = np.empty(len(values), object if self.feature.is_string else self.feature.dtype)
        for i, value in enumerate(values):
            row[i] = value if self.packs else value[()]
        return row

    def begin(self, memory, place, rows):
        np, (values, sizes) = self.np, place
        if self.feature.row_bytes is not None:
            self.rows = np.ndarray((rows, *self.feature.shape), self.feature.dtype, memory, values)
            return
        self.table = np.ndarray((rows, 2), np.uint64, memory, values)
        self.axes = np.ndarray((rows, len(self.feature.shape)), np.int64, memory, sizes)

    def encoded(self, value):
        """The bytes of a row of a size of its own, as one object or several, how many bytes they are, and the shape."""
        np, name = self.np, self.feature.name
        array = checked(np, self.feature, value)
        if not self.feature.is_string:
            return [np.ascontiguousarray(array).reshape(-1).view(np.uint8)] if array.size else [], array.nbytes, array.shape
        texts = []
        for text in array.reshape(-1).tolist():
            if isinstance(text, str):
                text = text.encode("utf-8", "surrogateescape")
            elif not isinstance(text, bytes):
                raise Refused(f"{described(text)} for {name!r}, not a string")
            texts.append(text)
        if array.ndim == 0:
            return texts, len(texts[0]), ()
        lengths = [len(text) for text in texts]
        if max(lengths, default=0) > MAX_ROW_BYTES:
            raise Refused(f"a string of {max(lengths)} bytes for {name!r}, more than a row may have: {MAX_ROW_BYTES}")
        return [np.array(lengths, np.uint32).tobytes(), *texts], 4 * len(texts) + sum(lengths), array.shape


# --- randomness ---------------------------------------------------------------------------------


class Seeds:
    """Gives the global generators of random, NumPy and torch each element's own draws: those that the function uses, from then on.

    Whether it uses one is seen behind each sheet by the generator's state: then the sheet is done again, with its rows seeded.
    """

    def __init__(self, np, key, wanted, mixed):
        self.np = np
        self.key = key
        self.mixed = mixed
        self.generators = dict(GENERATORS) if wanted else {}
        self.used = []
        self.states = {}

    def begin(self):
        """In front of a sheet."""
        if self.generators:
            self.states = {name: kind.state() for name, kind in self.generators.items() if name in sys.modules}

    def found(self):
        """Whether the sheet behind begin() has used one that was not seeded."""
        found = False
        for name, kind in list(self.generators.items()):
            if name not in sys.modules:
                continue
            # One that the function has imported is not known from before.
            if name not in self.states or kind.state() != self.states[name]:
                del self.generators[name]
                self.used.append(kind(self.np))
                found = True
        return found

    def row(self, path):
        key = self.mixed(self.key, path)
        for generator in self.used:
            generator.seed(key)


class EveryGenerator:
    """Seeds all global generators of modules that are there."""

    def __init__(self, np):
        self.np = np
        self.generators = {}
        self.modules = 0

    def are_new(self):
        """Whether there is one that has not been seeded."""
        if len(sys.modules) == self.modules:
            return False
        self.modules = len(sys.modules)
        return any(name in sys.modules and name not in self.generators for name in GENERATORS)

    def seed(self, key):
        for name, kind in GENERATORS.items():
            if name in sys.modules and name not in self.generators:
                self.generators[name] = kind(self.np)
        for generator in self.generators.values():
            generator.seed(key)


class _PythonRandom:
    def __init__(self, np):
        import _random
        import random

        generator = random._inst
        seed_words = _random.Random.seed

        def seed(key):
            # random.seed(key), without its look at the key's type.
            seed_words(generator, key)
            generator.gauss_next = None

        self.seed = seed

    @staticmethod
    def state():
        return sys.modules["random"].getstate()


class _NumpyRandom:
    def __init__(self, np):
        import numpy.random as random

        if not hasattr(random, "set_bit_generator"):
            # Before NumPy 1.24: slower, and as good.
            self.seed = lambda key: random.seed([key & 0xFFFFFFFF, key >> 32])
            return
        bits = random.Philox(0)
        random.set_bit_generator(bits)
        # The generator keeps a second normal number back, which is to go, too.
        state = {**bits.state, "has_gauss": 0, "gauss": 0.0}
        words = state["state"]["key"]

        def seed(key):
            words[0] = key
            random.set_state(state)

        self.seed = seed

    @staticmethod
    def state():
        random = sys.modules["numpy.random"]
        state = random.get_state(legacy=False)
        inner = state["state"]
        numbers = {name: value.tobytes() if hasattr(value, "tobytes") else value for name, value in inner.items()}
        return state["bit_generator"], numbers, state.get("has_gauss"), state.get("gauss"), state.get("buffer_pos")


class _TorchRandom:
    def __init__(self, np):
        self.seed = sys.modules["torch"].random.default_generator.manual_seed

    @staticmethod
    def state():
        torch = sys.modules["torch"]
        return torch.random.default_generator.get_state().numpy().tobytes() if hasattr(torch, "random") else b""


GENERATORS = {"random": _PythonRandom, "numpy.random": _NumpyRandom, "torch": _TorchRandom}


# --- the loop -----------------------------------------------------------------------------------


class Worker:
    """Computes sheets.

    Args:
      np: the module.
      structures, row: the modules _structure and _row of this package, without the rest of it.
      forked: a list, which is not empty in a child of this process.
    """

    def __init__(self, np, function, configuration, structures, row, forked):
        self.np = np
        self.forked = forked
        self.name = configuration["name"]
        self.threads = configuration["threads"]
        self.inputs = [Feature(np, described) for described in configuration["inputs"]]
        # Each row's identity.
        self.inputs.append(Feature(np, {"name": "", "dtype": "uint64", "shape": []}))
        self.yields = configuration.get("yields", False)
        describes, lists = configuration["describes"], configuration.get("lists", False)
        iterates = configuration.get("iterates", False)
        self.outputs = [Output(np, described, configuration.get("casts", False), self.yields and not describes) for described in configuration["outputs"]]
        self.structures = structures
        # Where some of its arguments are constants, they come with it.
        function, constants = function if isinstance(function, tuple) else (function, None)
        if configuration.get("tensors", False):
            function = with_tensors(np, function)
        if constants:
            function = with_constants(function, constants)
        if lists:
            function = with_list(function)
        if describes and not iterates:
            function = self._describing(function)
        given = structures.from_json(configuration["input_structure"])
        self.takes_one = given is None
        # A function may want to know of a sheet's rows before it is called for each.
        self.ahead = getattr(function, "ahead", None) if self.takes_one else None
        self.call = function if self.takes_one else caller(function, given)
        wanted = structures.from_json("null" if describes else configuration["output_structure"])
        self.flatten = flattener(wanted)
        # Of a lone tensor, the most frequent one, nothing is packed and unpacked.
        self.lone = self.outputs[0] if wanted is None and self.outputs[0].feature.row_bytes is not None else None
        self.put = self._put_all if self.yields and not describes else self._put
        self.trays = {}
        self.progress = memoryview(mmap.mmap(OUTPUTS, mmap.PAGESIZE)).cast("Q")
        self.seeds = Seeds(np, configuration["key"], configuration["seeds"] and not iterates, row.mixed)
        self.row = row
        row.key = configuration["key"]
        self.tray = self.given_room = None
        row.room = self._room
        if iterates:
            self._iterate(function, given, configuration["seeds"], describes)

    def _iterate(self, make, given, seeds, describes):
        """Rows are elements of an iterable, by their numbers."""
        outputs, flatten = self.outputs[:-4], self.flatten
        describe = self._describing(lambda element: element) if describes else None

        def to_arrays(element):
            tensors = []
            flatten(describe(element) if describe else element, tensors)
            arrays = []
            for output, value in zip(outputs, tensors):
                feature = output.feature
                # Most are as declared.
                is_checked = type(value) is array_type and value.dtype is feature.dtype and value.shape == feature.shape
                arrays.append((value if is_checked else checked(self.np, feature, value)).copy())
            return arrays

        progress, row_at, array_type = self.progress, 0, self.np.ndarray

        def go_through(number):
            """Elements on the way to a row are none of it: each has its own time. None: the row's own is next."""
            nonlocal row_at
            if number is None:
                progress[1] = row_at
                return
            if progress[1] < 1 << 32:
                row_at = progress[1]
            progress[1] = (number % (1 << 31) + 1) << 32

        def nothing(feature):
            return b"" if feature.is_string and not feature.shape else self.np.zeros([max(size, 0) for size in feature.shape], feature.dtype or object)

        elements = load_beside("_python_iterator").Elements(
            self.name, make, to_arrays, [nothing(output.feature) for output in outputs], EveryGenerator(self.np) if seeds else None, self.row, go_through
        )
        self.call = caller(elements, given)
        self.put = self._put_element
        self.lone = None

    def work(self, number, sheet, rows, size):
        """Computes a sheet: how many rows are made, the error of the one behind them or None, and the bytes that they take."""
        tray = self.trays.get(number)
        if tray is None:
            tray = self.trays[number] = Tray(number)
        tray.reach_inputs(size)
        self.progress[1] = 0
        self.progress[0] = sheet
        while True:
            self.seeds.begin()
            result = self._rows(tray, rows)
            # The next sheet is seen, or, where generators are to be seeded, this one as it was handed over.
            tray.drop_inputs(size)
            if not self.seeds.found():
                break
        self.progress[1] = 0
        return result

    def _rows(self, tray, rows):
        np, progress, state, call, forked = self.np, self.progress, self.row, self.call, self.forked
        found, _ = places(self.inputs, rows)
        columns = [column(np, feature, tray.inputs, place, rows) for feature, place in zip(self.inputs, found)]
        paths = columns.pop().tolist()
        self.columns = columns
        found, end = places([output.feature for output in self.outputs], rows)
        tray.reach_outputs(end)
        self.tray = tray
        self.end = end
        for output, place in zip(self.outputs, found):
            output.begin(tray.outputs, place, rows)
        seed = self.seeds.row if self.seeds.used else None
        lone = self.lone
        if lone is not None:
            target, dtype, shape, array = lone.rows, lone.feature.dtype, lone.feature.shape, np.ndarray
        row = 0
        if self.ahead is not None and seed is None and rows > 1:
            progress[1] = 1  # who dies here, dies of its first row, which is then tried alone
            self.ahead(columns[0])
        try:
            for value in columns[0] if self.takes_one else zip(*columns):
                progress[1] = row + 1
                state.path = path = paths[row]
                state.is_fresh = True
                if seed is not None:
                    seed(path)
                made = call(value)
                if forked:
                    # A child that the function has left behind, of which nothing is wanted.
                    os._exit(0)
                if lone is None:
                    self.put(tray, row, made)
                elif type(made) is array and made.dtype is dtype and made.shape == shape:
                    target[row] = made
                else:
                    self._put(tray, row, made)
                row += 1
        except BaseException as error:  # whatever it is, it is that row's
            return row, error_text(self.name, error), self.end
        return rows, None, self.end

    def _describing(self, function):
        """The function, with a text that says what it returns in the place of that: JSON {"structure", "outputs"}, as a plan has them."""
        np, structures = self.np, self.structures

        def describe(*element):
            made = function(*element)
            if self.yields:
                # What the first one of them is; nothing, where there is none.
                for made in elements_of(made):
                    break
                else:
                    return "null"
            structure, values = structures.flatten(made, lambda value: not isinstance(value, (dict, tuple)), f"what the Python function {self.name} returned")
            outputs = []
            for path, value in zip(structures.paths(structure), values):
                array, _ = as_array(np, value, path)
                is_string = array.dtype.kind in "OSUT"
                dtype = "string" if is_string else array.dtype.newbyteorder("=").name
                if dtype not in TYPES:
                    raise Refused(f"{described(array)} for {path!r}, a type that no tensor has")
                outputs.append({"name": path, "dtype": dtype, "shape": self._shape_of_all(array.shape, element)})
            return json.dumps({"structure": structures.to_json(structure), "outputs": outputs})

        return describe

    def _shape_of_all(self, shape, element):
        """Of a batch the first axis: batches may differ in it where the data tells how many rows there are."""
        sizes = {feature.shape[:1] for feature in self.inputs[:-1]}
        tensors = self.structures.flatten(element[0] if len(element) == 1 else element, lambda value: not isinstance(value, (dict, tuple)), "an element")[1]
        is_batch = sizes == {(-1,)} and shape and {np_shape[0] for np_shape in map(self.np.shape, tensors)} == {shape[0]}
        return [-1, *shape[1:]] if is_batch else list(shape)

    def _put(self, tray, row, made):
        tensors = []
        self.flatten(made, tensors)
        for output, value in zip(self.outputs, tensors):
            if output.feature.row_bytes is not None:
                output.rows[row] = checked(self.np, output.feature, value)
            else:
                self._lay(tray, row, output, value)

    def _put_element(self, tray, row, made):
        """Of what Elements gives: its arrays are checked."""
        arrays, behind, is_one, state = made
        for output, array in zip(self.outputs, arrays):
            if output.feature.row_bytes is not None:
                output.rows[row] = array
            else:
                self._lay(tray, row, output, array)
        pass_, number, flag, told = self.outputs[-4:]
        pass_.rows[row] = self.columns[0][row]
        number.rows[row] = behind
        flag.rows[row] = is_one
        if state:
            self._lay(tray, row, told, state)
        else:
            told.table[row] = self.end, 0

    def _put_all(self, tray, row, made):
        columns, size = [[] for _ in self.outputs], 0
        for element in elements_of(made):
            tensors = []
            self.flatten(element, tensors)
            for output, value, values in zip(self.outputs, tensors, columns):
                array = checked(self.np, output.of_each, value)
                # What it yields may be a buffer that it writes into again.
                values.append(array.copy() if array is value else array)
                size += array.nbytes
            if size > MAX_ROW_BYTES:
                raise Refused(f"more than {MAX_ROW_BYTES} bytes of elements for one")
        for output, values in zip(self.outputs, columns):
            self._lay(tray, row, output, output.joined(values))

    def _room(self, size):
        """See _row.room."""
        self.tray.reach_outputs(self.end + size)
        self.given_room = room = self.np.ndarray((size,), self.np.uint8, self.tray.outputs, self.end)
        return room

    def _lies_there(self, value):
        """Whether the value is the beginning of what _room() gave for this row."""
        room, self.given_room = self.given_room, None
        if room is None or type(value) is not self.np.ndarray or not value.size:
            return False
        place, start = value.__array_interface__["data"][0], room.__array_interface__["data"][0]
        return place == start and value.nbytes <= room.nbytes and value.flags.c_contiguous

    def _lay(self, tray, row, output, value):
        parts, size, shape = output.encoded(value)
        if size > MAX_ROW_BYTES:
            raise Refused(f"{size} bytes for {output.feature.name!r}, more than a row may have: {MAX_ROW_BYTES}")
        start = offset = self.end
        tray.reach_outputs(start + size)
        for part in () if self._lies_there(value) else parts:
            tray.outputs[offset : offset + len(part)] = part
            offset += len(part)
        output.table[row] = start, size
        output.axes[row] = shape
        self.end = aligned(start + size)


def error_text(name, error):
    if isinstance(error, Refused):
        return f"the Python function {name} returned {error}"
    import traceback

    try:
        text = str(error)
    except Exception:
        text = "an error that cannot be shown"
    # Only the user's own frames.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    lines = "".join(traceback.format_list(frames[-12:]))
    return f"the Python function {name} raised {type(error).__name__}: {text}\n{lines}".rstrip()


# --- the process --------------------------------------------------------------------------------


def end_with_daemon(daemon):
    """Has the kernel kill this process with the daemon, also in the middle of a row."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    except (ImportError, OSError, AttributeError):
        pass  # it ends when it asks for more work
    if os.getppid() != daemon:
        os._exit(1)


def load_beside(name):
    """A module of this package that imports nothing of it, without the rest of the package."""
    import types

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    module = types.ModuleType(f"penstock.{name}")
    module.__file__ = path
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    return module


def send(what, tray=0, sheet=0, rows=0, size=0, text=""):
    data = text.encode("utf-8", "replace")[:MAX_TEXT_BYTES]
    os.write(SOCKET, MESSAGE.pack(what, tray, sheet, rows, size) + data)


def prepare(forked):
    """What takes time before the first sheet: NumPy and the function."""
    header = read_header(FUNCTION)
    sys.path[:] = header["path"]
    size = int(sys.argv[2])
    configuration = json.loads(os.pread(INPUTS, size, 0))
    limit_threads(configuration["threads"], configuration["sets_threads"])
    import numpy as np

    row = sys.modules["penstock._row"] = load_beside("_row")
    load_beside("_albumentations").follow(row)
    function = load(FUNCTION, header)
    limit_threads_of_modules(configuration["threads"])
    return Worker(np, function, configuration, load_beside("_structure"), row, forked)


def main():
    end_with_daemon(int(sys.argv[3]))
    import faulthandler
    import signal

    faulthandler.enable(STACK, all_threads=False)
    faulthandler.register(signal.SIGUSR2, STACK, all_threads=True)
    os.nice(10)  # a trainer on the same processors goes first, as in front of the daemon's threads
    sys.stdout.reconfigure(line_buffering=True)
    forked = []
    os.register_at_fork(after_in_child=lambda: forked.append(True))
    try:
        worker = prepare(forked)
    except BaseException as error:
        send(CANNOT_LOAD, text=load_error(error))
        return
    send(READY)
    while True:
        data = os.read(SOCKET, MESSAGE.size)
        if len(data) < MESSAGE.size:
            return
        what, number, sheet, rows, size = MESSAGE.unpack(data)
        if what != WORK:
            return
        made, error, end = worker.work(number, sheet, rows, size)
        send(MADE if error is None else FAILED, number, sheet, made, end, error or "")
        limit_threads_of_modules(worker.threads)


def load_error(error):
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    lines = "".join(traceback.format_list(frames[-12:]))
    hint = ""
    if isinstance(error, ModuleNotFoundError):
        hint = "; workers have the sys.path of the process that made the dataset"
    elif isinstance(error, AttributeError) and "__main__" in str(error):
        hint = '; functions of __main__ travel by cloudpickle: pip install "penstock[python]"'
    return f"{type(error).__name__}: {error}{hint}\n{lines}".rstrip()


if __name__ == "penstock._python_worker" and len(sys.argv) == 4:
    try:
        main()
    finally:
        # Threads that the function has started do not hold it up.
        try:
            sys.stdout.flush()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
