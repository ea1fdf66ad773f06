"""The worker process of Python functions, without a daemon: what it makes of sheets, and what it says of results that are none."""

import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import sys

import numpy as np
import pytest

import penstock
from penstock._dataset import _python

TRAY = 1 << 40
MESSAGE = struct.Struct("=IIQQQ")
WORK, LEAVE, CONFIGURE, READY, CANNOT_LOAD, MADE, FAILED = 1, 2, 3, 16, 17, 18, 19
BOOTSTRAP = "import sys;exec(compile(open(sys.argv[1],'rb').read(),sys.argv[1],'exec'),{'__name__':'penstock._worker._start','__file__':sys.argv[1]})"


class Desk:
    """A worker process with its desk, seen from the daemon's side."""

    def __init__(self, function, inputs, outputs, given="null", wanted="null", seeds=True, key=7):
        self.inputs, self.outputs = inputs, outputs
        file = _python.FunctionFile(function)
        head = os.pread(file.file, 24, 0)
        header = json.loads(os.pread(file.file, struct.unpack("=Q", head[16:])[0], 24))
        configuration = self.configuration(inputs, outputs, given, wanted, seeds, key)
        self.files = []
        for name in ("inputs", "outputs"):
            self.files.append(os.memfd_create(name))
            os.ftruncate(self.files[-1], 5 * TRAY)
        os.pwrite(self.files[0], configuration, 0)
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.stack = os.memfd_create("stack")
        # Free descriptors above 3 to 7, which the worker gets them by.
        mine = (file.file, *self.files, theirs.fileno(), self.stack)
        beyond = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 40) for fd in mine]
        actions = [(os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(beyond)]
        environment = dict(variable.split("=", 1) for variable in header["environment"])
        arguments = [header["program"], *header["flags"], "-c", BOOTSTRAP, header["script"], str(len(configuration)), str(os.getpid())]
        self.pid = os.posix_spawn(header["program"], arguments, environment, file_actions=actions)
        for fd in beyond:
            os.close(fd)
        theirs.close()
        self.sheet = 0

    @staticmethod
    def configuration(inputs, outputs, given="null", wanted="null", seeds=True, key=7):
        described = [[{"name": name, "dtype": dtype, "shape": list(shape)} for name, dtype, shape in of] for of in (inputs, outputs)]
        return json.dumps({
            "name": "f", "inputs": described[0], "outputs": described[1], "input_structure": given, "output_structure": wanted,
            "seeds": seeds, "key": key, "describes": False, "threads": 1, "sets_threads": False,
        }).encode()  # fmt: skip

    def configure(self, inputs, outputs, **options):
        """Has it work for another pipeline."""
        self.inputs, self.outputs = inputs, outputs
        configuration = self.configuration(inputs, outputs, **options)
        os.pwrite(self.files[0], configuration, 0)
        self.socket.send(MESSAGE.pack(CONFIGURE, 0, 0, 0, len(configuration)))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.socket.close()
        for file in (*self.files, self.stack):
            os.close(file)

    def hear(self):
        data = self.socket.recv(1 << 16)
        return (*MESSAGE.unpack_from(data), data[MESSAGE.size :].decode())

    def send(self, paths, *columns, tray=0):
        """Lays fixed columns and identities before it."""
        memory = mmap.mmap(self.files[0], 1 << 22, offset=(tray + 1) * TRAY)
        offset = 0
        for column in (*columns, np.array(paths, np.uint64)):
            offset = offset + 63 & ~63
            data = np.ascontiguousarray(column).tobytes()
            memory[offset : offset + len(data)] = data
            offset += len(data)
        self.sheet += 1
        self.socket.send(MESSAGE.pack(WORK, tray, self.sheet, len(paths), offset))

    def made(self, rows, tray=0):
        """The fixed outputs of a sheet."""
        memory = mmap.mmap(self.files[1], 1 << 22, offset=(tray + 1) * TRAY)
        found, offset = [], 0
        for _, dtype, shape in self.outputs:
            offset = offset + 63 & ~63
            array = np.ndarray((rows, *shape), dtype, memory, offset).copy()
            offset += array.nbytes
            found.append(array)
        return found


def twice(x):
    return x * 2


def test_rows_are_computed_in_place():
    with Desk(twice, [("value", "int64", (3,))], [("value", "int64", (3,))]) as desk:
        assert desk.hear()[0] == READY
        data = np.arange(12).reshape(4, 3)
        desk.send(range(4), data)
        what, tray, sheet, rows, _, text = desk.hear()
        assert (what, tray, sheet, rows, text) == (MADE, 0, 1, 4, "")
        assert np.array_equal(desk.made(4)[0], data * 2)


class Calls:
    """How often the object was called before, as numbers of any type and shape."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return np.full_like(x, self.calls - 1)


def test_a_worker_goes_to_another_pipeline_with_the_function_anew():
    with Desk(Calls(), [("value", "int64", ())], [("value", "int64", ())]) as desk:
        assert desk.hear()[0] == READY
        desk.send(range(3), np.arange(3))
        assert desk.hear()[0] == MADE
        assert desk.made(3)[0].tolist() == [0, 1, 2]
        desk.configure([("value", "float32", (2,))], [("value", "float32", (2,))])
        assert desk.hear()[0] == READY
        # No sheet is begun, as the next one may have any number.
        assert words_of(desk.files[1])[:2] == (0, 0)
        desk.sheet = 0
        desk.send(range(2), np.zeros((2, 2), np.float32))
        what, tray, sheet, rows, _, text = desk.hear()
        assert (what, tray, sheet, rows, text) == (MADE, 0, 1, 2, "")
        assert desk.made(2)[0].tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("asks", ["", "penstock.rng().random()", "import penstock._dataset._order as order; penstock._dataset._order is order or 1 / 0"])
def test_the_package_is_imported_for_who_asks_it_for_something(asks):
    """And that is no row's time."""
    with Desk(Asking(asks), [("value", "int64", ())], [("value", "int64", (3,))]) as desk:
        what, *_, text = desk.hear()
        assert (what, text) == (READY, "")
        desk.send(range(2), np.zeros(2, np.int64))
        assert desk.hear()[0] == MADE
        # The module _core, the row's number while it was imported, and a name that there is not.
        assert desk.made(2)[0].tolist() == [[int(asks != ""), 0, 0]] * 2


class Asking:
    """Made in a worker without this module, which imports the package."""

    def __init__(self, asks):
        self.asks = asks

    def __call__(self, x):
        raise AssertionError("another one stands in for it")

    def __reduce__(self):
        # Modules that every interpreter has.
        return eval, (f"(names := {{}}, exec({ASKING!r}, names), names['of']({self.asks!r}))[-1]", {})


ASKING = """
import os, struct, sys
import numpy as np
import penstock

rows = [0]
def watch(event, arguments):
    if event == "exec" and arguments[0].co_filename.endswith(os.path.join("penstock", "__init__.py")):
        rows.append(struct.unpack("=QQQ", os.pread(5, 24, 0))[1])
sys.addaudithook(watch)

def of(asks):
    def function(x):
        exec(asks, {"penstock": penstock})
        has_name = hasattr(penstock, "no_such_name") if asks else False
        return np.array(["penstock._core" in sys.modules, max(rows), has_name], np.int64)
    return function
"""


def write_into_it(x):
    x += 1
    return x


def test_a_function_may_write_into_its_argument_and_the_next_sheet_is_unharmed():
    with Desk(write_into_it, [("value", "int64", ())], [("value", "int64", ())]) as desk:
        desk.hear()
        for start in (0, 100):
            desk.send(range(3), np.arange(start, start + 3))
            desk.hear()
            assert desk.made(3)[0].tolist() == [start + 1, start + 2, start + 3]


def draw(x):
    import random

    return np.array([random.random(), np.random.random(), np.random.standard_normal()])


def draws_of(sheets, seeds=True):
    found = {}
    with Desk(draw, [("value", "int64", ())], [("value", "float64", (3,))], seeds=seeds) as desk:
        desk.hear()
        for paths in sheets:
            desk.send(paths, np.zeros(len(paths), np.int64))
            assert desk.hear()[0] == MADE
            for path, row in zip(paths, desk.made(len(paths))[0].tolist()):
                found[path] = row
    return found


def test_global_generators_draw_by_the_element_alone():
    whole = draws_of([range(10)])
    assert draws_of([[3, 1], [7], [0, 9, 2], [4, 8, 5, 6]]) == whole
    assert len({tuple(row) for row in whole.values()}) == 10
    assert draws_of([range(10)], seeds=False) != whole


@pytest.mark.parametrize("made, complaint", [
    ("None", "returned None; does it lack a return?"),
    ("np.zeros(3)", "float64 (3,) for 'value', not int64 (3,); return array.astype(np.int64)"),
    ("np.zeros(4, np.int64)", "int64 (4,) for 'value', not int64 (3,)"),
    ("{'value': 1}", "returned a dict, not a tensor"),
    ("(i for i in range(3))", "a generator for 'value', not a tensor"),
    ("'text'", "object () for 'value', not int64 (3,)"),
    ("[1, 2, 3.5]", "float64 (3,) for 'value', not int64 (3,)"),
    ("1 / 0", "raised ZeroDivisionError: division by zero"),
    ("exit(3)", "raised SystemExit: 3"),
    ("OnDevice()", "a torch tensor on cuda:1 for 'value': return tensor.cpu()"),
])  # fmt: skip
def test_what_is_no_result_is_told_of(made, complaint):
    with Desk(Returns(made), [("value", "int64", ())], [("value", "int64", (3,))]) as desk:
        desk.hear()
        desk.send(range(2), np.zeros(2, np.int64))
        what, _, _, rows, _, text = desk.hear()
        assert (what, rows) == (FAILED, 0)
        assert complaint in text, text


class Returns:
    """A function that returns what an expression says."""

    def __init__(self, text):
        self.text = text

    def __call__(self, x):
        return eval(self.text, {"np": np, "exit": __import__("sys").exit, "OnDevice": OnDevice, "read_only": read_only})


class OnDevice:
    """What a worker knows of a tensor of torch on a device."""

    device = type("device", (), {"type": "cuda", "__str__": lambda self: "cuda:1"})()

    def detach(self):
        raise AssertionError("nothing is copied from a device")


OnDevice.__module__ = "torch"


def read_only(array):
    array.setflags(write=False)
    return array


@pytest.mark.parametrize("made", [
    "np.arange(3).astype('>i8')", "np.arange(6)[::2] // 2", "[0, 1, 2]", "(0, 1, 2)", "read_only(np.arange(3))", "np.arange(5)[1:4][::-1][::-1] - 1",
    "np.broadcast_to(np.arange(3), (4, 3))[2]", "np.broadcast_to(np.int64(1), 3) * np.arange(3)", "np.arange(9).reshape(3, 3).T[0] // 3",
])  # fmt: skip
def test_what_means_the_same_is_taken(made):
    with Desk(Returns(made), [("value", "int64", ())], [("value", "int64", (3,))]) as desk:
        desk.hear()
        desk.send(range(1), np.zeros(1, np.int64))
        assert desk.hear()[0] == MADE
        assert desk.made(1)[0].tolist() == [[0, 1, 2]]


class SameBuffer:
    """Returns one array each time, and writes the next row into it: a view that is changed later."""

    def __init__(self):
        self.buffer = np.zeros((2, 3), np.int64)

    def __call__(self, x):
        self.buffer[:] = x
        return self.buffer[0]


def test_a_buffer_that_is_returned_each_time_and_changed_later():
    with Desk(SameBuffer(), [("value", "int64", ())], [("value", "int64", (3,))]) as desk:
        desk.hear()
        desk.send(range(5), np.arange(5))
        assert desk.hear()[0] == MADE
        assert desk.made(5)[0].tolist() == [[x] * 3 for x in range(5)]


def test_a_view_of_many_bytes_that_are_one_element():
    """np.broadcast_to: 3 MB that lie in memory as 8 bytes."""
    with Desk(Returns("np.broadcast_to(np.int64(7), (400_000,))"), [("value", "int64", ())], [("value", "int64", (400_000,))]) as desk:
        desk.hear()
        desk.send(range(1), np.zeros(1, np.int64))
        assert desk.hear()[0] == MADE
        assert (desk.made(1)[0] == 7).all()


class NotThere:
    def __reduce__(self):
        return __import__, ("no_such_module",)


def test_what_cannot_be_loaded_is_told_of():
    with Desk(NotThere(), [("value", "int64", ())], [("value", "int64", ())]) as desk:
        what, *_, text = desk.hear()
        assert what == CANNOT_LOAD
        assert "ModuleNotFoundError: No module named 'no_such_module'; workers have the sys.path" in text


NotThere.__call__ = lambda self, x: x


# --- whose time it is ---------------------------------------------------------------------------


def words_of(files):
    """What the process says of where it is: the sheet, the row and 1, and how often a sheet was begun."""
    return struct.unpack("=QQQ", os.pread(files, 24, 0))


class DrawsFromPenstock:
    """Made in a worker: it draws, and returns at which rows numpy.random was imported since it was loaded: how often, and the last one."""

    def __init__(self, rows=None):
        self.rows = rows

    def __reduce__(self):
        return _watching_imports, ()

    def __call__(self, x):
        penstock.rng().random()
        return np.array([len(self.rows), *self.rows[-1:]])


def _watching_imports():
    rows = []

    def watch(event, arguments):
        if event == "exec" and arguments[0].co_filename.endswith(os.path.join("numpy", "random", "__init__.py")):
            rows.append(words_of(5)[1])

    sys.addaudithook(watch)
    assert "numpy.random" not in sys.modules, "NumPy imports it at once: this test sees nothing"
    return DrawsFromPenstock(rows)


@pytest.mark.parametrize("seeds", [True, False])
def test_what_is_imported_for_draws_is_no_rows_time(seeds):
    # fault 64
    with Desk(DrawsFromPenstock(), [("value", "int64", ())], [("value", "int64", (2,))], seeds=seeds) as desk:
        what, *_, text = desk.hear()
        if "sees nothing" in text:
            pytest.skip(text)
        assert what == READY
        desk.send(range(2), np.zeros(2, np.int64))
        assert desk.hear()[0] == MADE
        # The daemon saw no row meanwhile.
        assert desk.made(2)[0][-1].tolist() == [1, 0]


def test_a_sheet_that_is_done_again_is_told_from_one_that_takes_long():
    begun = {}
    for seeds in (True, False):
        with Desk(draw, [("value", "int64", ())], [("value", "float64", (3,))], seeds=seeds) as desk:
            desk.hear()
            for sheet in (1, 2):
                desk.send([5], np.zeros(1, np.int64))
                assert desk.hear()[0] == MADE
                assert words_of(desk.files[1])[:2] == (sheet, 0)
                begun[seeds, sheet] = words_of(desk.files[1])[2]
    # Its only row has one number both times.
    assert begun[True, 1] == begun[False, 1] + 1
    assert all(begun[seeds, 2] == begun[seeds, 1] + 1 for seeds in (True, False))
