"""Python functions in worker processes, end to end: the same bytes whatever the workers, their deaths and the place of a resume; and what is refused. Fault 64."""

import hashlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import penstock
from penstock._dataset import _python
from penstock._running import _daemon

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import children  # noqa: E402

# Functions of this module travel by its name, as workers have pytest's sys.path.


def twice(x):
    return x * 2


def digest(dataset, **arguments):
    """Of all elements' bytes and types, in order."""
    whole = hashlib.sha256()
    for element in dataset:
        for array in element if isinstance(element, tuple) else element.values() if isinstance(element, dict) else [element]:
            array = np.asarray(array)
            whole.update(f"{array.dtype} {array.shape}".encode())
            whole.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return whole.hexdigest()


def range_of(count):
    return penstock.Dataset.range(count)


def test_one_array_in_one_worker():
    dataset = range_of(100).map(twice, python=True, output=penstock.TensorSpec((), np.int64), workers=1).batch(10)
    assert [element.tolist() for element in dataset] == [[2 * (10 * i + j) for j in range(10)] for i in range(10)]


def test_outputs_are_learned_from_the_first_element():
    dataset = range_of(6).map(nest, python=True)
    assert dataset.element_spec == {
        "n": penstock.TensorSpec((), np.int64), "pair": (penstock.TensorSpec((2, 3), np.float32), penstock.TensorSpec((), penstock.string)),
    }  # fmt: skip
    elements = list(dataset)
    assert len(elements) == 6
    assert elements[4]["n"] == 4 and elements[4]["pair"][0].tolist() == [[4, 4, 4]] * 2 and elements[4]["pair"][1] == b"n 4"
    # And they have a structure for what comes behind.
    assert [int(n) for n in range_of(3).map(nest, python=True).map(lambda element: element["n"] + 1)] == [1, 2, 3]


def nest(x):
    return {"n": x, "pair": (np.full((2, 3), x, np.float32), f"n {x}")}


def words(x):
    return np.array([b"word %d" % i for i in range(x % 4)], object), np.arange(x % 5, dtype=np.uint8), "ü" * (x % 3)


WORDS = (penstock.TensorSpec((None,), penstock.string), penstock.TensorSpec((None,), np.uint8), penstock.TensorSpec((), penstock.string))


def lengths(strings, numbers, text):
    assert all(isinstance(string, bytes) for string in strings) and isinstance(text, bytes)
    return {"strings": len(strings), "numbers": int(numbers.sum()), "text": len(text), "first": strings[0] if len(strings) else b"none"}


def test_strings_and_sizes_that_only_the_data_tells_go_in_and_out():
    expected = [{"strings": x % 4, "numbers": sum(range(x % 5)), "text": 2 * (x % 3), "first": b"word 0" if x % 4 else b"none"} for x in range(40)]
    found = list(range_of(40).map(words, python=True, output=WORDS).map(lengths, python=True).as_numpy_iterator())
    assert found == expected


def test_behind_batch_an_element_is_a_batch():
    dataset = range_of(23).batch(5).map(mean, python=True)
    assert dataset.element_spec == {"rows": penstock.TensorSpec((None,), np.int64), "mean": penstock.TensorSpec((), np.float64)}
    assert [(element["rows"].tolist(), float(element["mean"])) for element in dataset][-1] == ([20, 21, 22], 21.0)


def mean(x):
    return {"rows": x, "mean": x.mean()}


def draws(x):
    return np.array([random.random(), np.random.random(), penstock.rng().random(), np.random.standard_normal(), x])


DRAWS = penstock.TensorSpec((5,), np.float64)


def drawn(workers, **arguments):
    dataset = range_of(600).shuffle(100, seed=3, reshuffle_each_iteration=False).repeat(2)
    return dataset.map(draws, python=True, output=DRAWS, seed=5, workers=workers, **arguments).batch(32)


def test_bytes_do_not_depend_on_the_number_of_workers():
    one = digest(drawn(1))
    assert digest(drawn(2)) == one and digest(drawn(4)) == one and digest(drawn(16)) == one
    assert digest(drawn(2, max_rows_per_worker=100)) == one
    rows = np.concatenate([np.asarray(batch) for batch in drawn(2)])
    # Each element of each epoch has draws of its own.
    assert len(np.unique(rows[:, 0])) == len(np.unique(rows[:, 1])) == len(np.unique(rows[:, 2])) == len(rows) == 1200


def of_any_size(x):
    """Small, large and very large ones, beside another array whose size is not known."""
    size = (3, 40_000, 700_000)[int(x) % 3]
    return {"image": np.full((size, 2), x, np.uint8), "flags": np.arange(size) % 2 == 0, "label": np.arange(x % 4, dtype=np.int64)}


OF_ANY_SIZE = {
    "image": penstock.TensorSpec((None, 2), np.uint8),
    "flags": penstock.TensorSpec((None,), np.bool_),
    "label": penstock.TensorSpec((None,), np.int64),
}


@pytest.mark.parametrize("batched", [False, True])
def test_large_rows_of_any_size(batched):
    dataset = range_of(24).map(of_any_size, python=True, output=OF_ANY_SIZE, workers=2)
    found = dataset.batch(1) if batched else dataset
    for number, element in enumerate(found.as_numpy_iterator()):
        for name, expected in of_any_size(np.int64(number)).items():
            value = element[name][0] if batched else element[name]
            assert value.dtype == expected.dtype and np.array_equal(value, expected), (number, name)
    assert number == 23


class Process:
    def __call__(self, x):
        time.sleep(0.001)  # so that sheets are small
        return np.array([os.getpid(), x])


def test_workers_are_replaced_behind_max_rows_per_worker():
    def rows_of_each(**arguments):
        dataset = range_of(400).map(Process(), python=True, output=penstock.TensorSpec((2,), np.int64), workers=2, **arguments)
        rows = np.array([row.copy() for row in dataset.as_numpy_iterator()])
        assert rows[:, 1].tolist() == list(range(400))
        return np.unique(rows[:, 0], return_counts=True)[1]

    # What lies ready at a worker it makes, too: four sheets of four rows.
    assert rows_of_each(max_rows_per_worker=40).max() <= 40 + 16
    assert rows_of_each().max() > 40 + 16


def test_passes_draw_anew_and_a_seed_can_hold_them():
    dataset = range_of(50).map(draws, python=True, output=DRAWS, seed=1).batch(50)
    first, second = ([np.asarray(batch) for batch in dataset] for _ in range(2))
    assert not np.array_equal(first[0], second[0])


def test_a_resume_has_the_same_tail():
    whole = [np.asarray(batch) for batch in drawn(2)]
    for step in (0, 7, 30):
        iterator = iter(drawn(1))
        for _ in range(step + 1):
            next(iterator)
        state = iterator.state_dict()
        iterator.close()
        resumed = iter(drawn(4))
        resumed.load_state_dict(state)
        tail = [np.asarray(batch) for batch in resumed]
        assert len(tail) == len(whole) - step - 1
        assert all(np.array_equal(a, b) for a, b in zip(tail, whole[step + 1 :]))


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


def mapped(function, version="", output=penstock.TensorSpec((), np.int64)):
    return range_of(100).map(function, python=True, output=output, version=version, seed=1).batch(10)


def state_behind_one(dataset):
    with iter(dataset) as iterator:
        next(iterator)
        return iterator.state_dict()


def test_changed_code_is_warned_of_and_a_changed_version_is_refused():
    state = state_behind_one(mapped(Times(2), "1"))
    iterator = iter(mapped(Times(3), "1"))
    with pytest.warns(RuntimeWarning, match="the code of a Python function has changed"):
        iterator.load_state_dict(state)
    assert next(iterator).tolist() == [3 * i for i in range(10, 20)]
    for changed in (mapped(Times(2), "2"), range_of(100).map(Times(2), python=True, output=penstock.TensorSpec((1,), np.int64), version="1", seed=1).batch(10)):
        iterator = iter(changed)
        iterator.load_state_dict({**state, "code": None})
        with pytest.raises(penstock.FailedPreconditionError, match=r"another stream: its work ops \(map, parse_example\) or their options differ; with --allow-changed-work"):
            next(iterator)
    # Where it is the same nothing is said.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iterator = iter(mapped(Times(2), "1"))
        iterator.load_state_dict(state)
        assert next(iterator).tolist() == [2 * i for i in range(10, 20)]


# --- what fails ---------------------------------------------------------------------------------


class Fails:
    """Does at element `at` what a text says, and returns the others."""

    def __init__(self, text, at=37):
        self.text, self.at = text, at

    def __call__(self, x):
        if x == self.at:
            exec(self.text, {"os": os, "np": np, "time": time, "signal": signal, "x": x})
        return x


def failing(text, **arguments):
    return range_of(100).map(Fails(text), python=True, output=penstock.TensorSpec((), np.int64), workers=2, **arguments)


FAILURES = {
    "raises": ("raise KeyError('gone')", "raised KeyError: 'gone'", {}),
    "exits": ("import sys; sys.exit(4)", "raised SystemExit: 4", {}),
    "ends its process": ("os._exit(3)", "ended its process (exit status 3) twice", {}),
    "aborts": ("os.abort()", "ended its process (SIGABRT) twice", {}),
    "is killed": ("os.kill(os.getpid(), 9)", "ended its process (SIGKILL) twice", {}),
    "crashes": ("import ctypes; ctypes.string_at(0)", "ended its process (SIGSEGV) twice", {}),
    "hangs": ("time.sleep(1000)", "took longer than timeout_ms (300) twice", {"timeout_ms": 300}),
    "hangs with the GIL": ("import ctypes; ctypes.PyDLL(None).sleep(1000)", "took longer than timeout_ms (300) twice", {"timeout_ms": 300}),
    "blocks signals and hangs": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32)); time.sleep(1000)", "took longer than timeout_ms (300) twice", {"timeout_ms": 300},
    ),
    "recurses": ("def f(): f()\nimport sys; sys.setrecursionlimit(500); f = eval('lambda g: g(g)'); f(f)", "raised RecursionError", {}),
    "closes descriptors": ("os.closerange(3, 256)", "ended its process (", {}),
}  # fmt: skip


@pytest.mark.parametrize("what", FAILURES)
def test_a_row_that(what):
    text, complaint, arguments = FAILURES[what]
    with pytest.raises(penstock.DataLossError) as error:
        list(failing(text, **arguments).batch(10))
    assert complaint in str(error.value), str(error.value)
    assert "Fails" in str(error.value)
    # It costs itself alone.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [int(x) for x in failing(text, **arguments).ignore_errors()]
    assert found == [x for x in range(100) if x != 37]


def test_a_crash_tells_where_it_was():
    with pytest.raises(penstock.DataLossError, match="python_functions_test.py"):
        list(failing("import ctypes; ctypes.string_at(0)"))
    with pytest.raises(penstock.DataLossError, match="python_functions_test.py"):
        list(failing("time.sleep(1000)", timeout_ms=300))


def test_a_function_that_always_dies_ends_the_pipeline_though_failures_are_ignored():
    dataset = range_of(100).map(die, python=True, output=penstock.TensorSpec((), np.int64), workers=2).ignore_errors()
    with pytest.raises(penstock.FailedPreconditionError, match="times within a minute, and no row was made in between"):
        list(dataset)


def die(x):
    os._exit(9)


def fork_and_return(x):
    os.fork()
    return x


def test_a_function_that_forks():
    dataset = range_of(20).map(fork_and_return, python=True, output=penstock.TensorSpec((), np.int64), workers=1)
    assert [int(x) for x in dataset] == list(range(20))


def test_a_result_that_is_none_of_what_was_declared():
    dataset = range_of(10).map(nothing, python=True, output=penstock.TensorSpec((), np.int64))
    with pytest.raises(penstock.DataLossError, match="the Python function nothing returned None; does it lack a return?"):
        list(dataset)


def nothing(x):
    pass


def test_a_traced_map_names_the_other_way():
    with pytest.raises(penstock.TraceError, match=r"map\(f, python=True\) runs any function"):
        range_of(3).map(lambda x: int(x))


def test_a_module_that_workers_lack(tmp_path, monkeypatch):
    (tmp_path / "only_here_for_a_test.py").write_text("def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here_for_a_test

    made = range_of(3).map(only_here_for_a_test.f, python=True, output=penstock.TensorSpec((), np.int64))
    assert [int(x) for x in made] == [0, 1, 2]
    os.remove(tmp_path / "only_here_for_a_test.py")
    for cached in (tmp_path / "__pycache__").glob("*"):
        cached.unlink()
    with pytest.raises(penstock.FailedPreconditionError, match="cannot be loaded in a worker process: ModuleNotFoundError: No module named 'only_here"):
        list(made)


class Holder:
    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, x):
        return x


def where_it_runs(x):
    return "|".join([sys.executable, sys.version, np.__version__, np.__file__])


def test_workers_run_the_programs_interpreter():
    """So that there is no other version of Python or NumPy which a function could meet."""
    (found,) = range_of(1).map(where_it_runs, python=True, output=penstock.TensorSpec((), penstock.string)).as_numpy_iterator()
    assert found.decode() == where_it_runs(0)


def test_what_cannot_be_pickled_is_named():
    with pytest.raises(TypeError, match="Holder cannot be pickled for worker processes: it uses lock, a _thread.lock"):
        range_of(3).map(Holder(), python=True)


def test_inner_functions_travel_by_cloudpickle_or_say_so():
    limit = 3
    if _python._cloudpickle() is None:
        with pytest.raises(TypeError, match="is a lambda, which travels to worker processes by the package cloudpickle"):
            range_of(3).map(lambda x: x + limit, python=True)
        return

    class Local:
        def add(self, x):
            return x + limit

    assert [int(x) for x in range_of(3).map(Local().add, python=True)] == [3, 4, 5]
    assert [int(x) for x in range_of(3).map(lambda x: x - limit, python=True)] == [-3, -2, -1]


# --- memory and processes -----------------------------------------------------------------------


def workers_of():
    """The processes of the private daemon's workers, oldest first."""
    return children.children_of(_daemon.private_process())


def copied_of(process, name):
    """The KiB of a mapped file that a process has pages of its own of; None where it does not map it."""
    text = pathlib.Path(f"/proc/{process}/smaps").read_text()
    sizes = re.findall(rf"{name}.*\n(?:\w+: .*\n)*?Anonymous: +(\d+) kB", text)
    return sum(map(int, sizes)) if sizes else None


class Adds:
    def __init__(self, array):
        self.array = array

    def __call__(self, x):
        assert not self.array.flags.writeable
        return self.array[x % len(self.array)] + x


def test_an_array_of_a_function_is_in_memory_once():
    array = np.arange(4_000_000)
    dataset = range_of(1000).map(Adds(array), python=True, output=penstock.TensorSpec((), np.int64), workers=2).batch(10)
    with iter(dataset) as iterator:
        next(iterator)
        found = [copied_of(process, "memfd:penstock-function") for process in workers_of()]
        # Another worker may be starting.
        assert any(kib is not None for kib in found) and not any(found)


def rows_of(dataset):
    return [tuple(np.asarray(row).tolist()) for row in dataset]


def drawn_once(x):
    return np.array([penstock.rng().random(), random.random(), np.random.random()])


ONCE = penstock.TensorSpec((3,), np.float64)


def two_of(x):
    return penstock.Dataset.from_tensors(x).repeat(2)


@pytest.mark.parametrize("workers", [1, 3])
def test_copies_draw_for_themselves_behind_the_point_of_duplication(workers):
    rows = rows_of(range_of(40).flat_map(two_of).map(drawn_once, python=True, output=ONCE, seed=5, workers=workers))
    assert len(rows) == len(set(rows)) == 80


@pytest.mark.parametrize("workers", [1, 3])
def test_copies_of_what_was_drawn_before_are_equal(workers):
    rows = rows_of(range_of(40).map(drawn_once, python=True, output=ONCE, seed=5, workers=workers).flat_map(two_of))
    assert len(rows) == 80 and len(set(rows)) == 40
    assert rows[::2] == rows[1::2]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_filter_that_draws_decides_for_each_copy(workers):
    kept = [int(x) for x in range_of(200).flat_map(two_of).filter(lambda x: penstock.rng().random() < 0.5, python=True, seed=5, workers=workers)]
    counts = [kept.count(x) for x in range(200)]
    # 50 each of none and both, and 100 of one, on the average.
    assert set(counts) == {0, 1, 2} and 60 < counts.count(1) < 140
    before = [int(x) for x in range_of(200).filter(lambda x: penstock.rng().random() < 0.5, python=True, seed=5, workers=workers).flat_map(two_of)]
    assert {before.count(x) for x in range(200)} == {0, 2}


class Slow:
    def __call__(self, x):
        time.sleep(0.002)
        return np.array([x, penstock.rng().integers(1 << 40)])


def test_workers_that_are_killed_at_random_cost_nothing():
    def dataset():
        return range_of(1500).map(Slow(), python=True, output=penstock.TensorSpec((2,), np.int64), seed=1, workers=2).batch(20)

    expected = digest(dataset().take(75))
    dice = random.Random(1)
    elements, killed = [], 0
    for batch in dataset():
        elements.append(np.asarray(batch).copy())
        if len(elements) % 6 == 0 and (workers := workers_of()):
            os.kill(dice.choice(workers), signal.SIGKILL)
            killed += 1
    assert digest(elements) == expected
    assert killed >= 5


def test_workers_end_with_the_pipeline_and_with_the_daemon():
    with iter(failing("pass").repeat().batch(10)) as iterator:
        next(iterator)
        workers = workers_of()
        assert workers
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{process}") for process in workers) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(os.path.exists(f"/proc/{process}") for process in workers)


class Counting:
    """Notes the process and how often the object was called."""

    def __init__(self, log):
        self.log = log
        self.calls = 0

    def __call__(self, x):
        with open(self.log, "a") as file:
            file.write(f"{os.getpid()} {self.calls}\n")
        self.calls += 1
        return x


@pytest.mark.parametrize("kept", ["seeds", "no seeds"])
def test_the_worker_that_tells_what_a_function_returns_goes_on_with_its_rows(tmp_path, kept):
    """So that what the function imports is imported once. Of the function itself each pipeline has its own."""
    dataset = range_of(3).map(Counting(tmp_path / "log"), python=True, workers=1, seeds=kept == "seeds")
    assert [int(x) for x in dataset] == [0, 1, 2]
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert [int(calls) for _, calls in lines] == [0, 0, 1, 2]
    assert len({process for process, _ in lines}) == 1


@pytest.mark.parametrize("kept", ["seeds", "no seeds"])
def test_functions_one_behind_the_other_are_loaded_once(tmp_path, kept):
    """Though the first ones are called to learn what the last one returns."""
    dataset = range_of(3)
    logs = [tmp_path / name for name in "abc"]
    for log in logs:
        dataset = dataset.map(Counting(log), python=True, workers=1, seeds=kept == "seeds")
    assert [int(x) for x in dataset] == [0, 1, 2]
    for log in logs:
        processes = [line.split()[0] for line in log.read_text().splitlines()]
        assert len(processes) > 3 and len(set(processes)) == 1


def hang(x):
    time.sleep(1000)


def test_what_hangs_ends_with_its_iterator():
    others = set(workers_of()) if _daemon.private_socket() else set()
    iterator = iter(range_of(10).map(hang, python=True, output=penstock.TensorSpec((), np.int64), workers=1))
    thread = threading.Thread(target=lambda: pytest.raises(penstock.Error, next, iterator))
    thread.start()
    deadline = time.monotonic() + 30
    while not set(workers_of()) - others and time.monotonic() < deadline:
        time.sleep(0.02)
    (worker,) = set(workers_of()) - others
    time.sleep(0.3)
    iterator.close()
    thread.join(30)
    assert not thread.is_alive()
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{worker}")


# What a worker must not be able to do to the daemon: write anything, anywhere.
FORGER = """
import mmap, os, random, struct, sys
dice = random.Random(SEED)
stride = 1 << 40
os.write(6, struct.pack("=IIQQQ", 16, 0, 0, 0, 0))
outputs = mmap.mmap(5, 1 << 20)
tray = mmap.mmap(5, 1 << 20, offset=stride)
while True:
    what, number, sheet, rows, size = struct.unpack("=IIQQQ", os.read(6, 32))
    for memory in outputs, tray:
        for offset in range(0, 4096, 8):
            memory[offset : offset + 8] = struct.pack("=Q", dice.choice([0, 1, 63, 64, 1 << 20, 1 << 31, 1 << 32, 1 << 40, 1 << 63, (1 << 64) - 1]))
    words = [dice.choice([what, 17, 18, 19, 99]), dice.choice([number, 0, 3, 4, 1 << 31]), dice.choice([sheet, 0, 1 << 63]),
             dice.choice([rows, 0, rows + 1, 1 << 40]), dice.choice([0, 64, 4096, 1 << 33, 1 << 63])]
    if dice.random() < 0.7:
        words[0], words[1], words[2], words[3] = 18, number, sheet, rows
    try:
        os.write(6, struct.pack("=IIQQQ", *words) + b"x" * dice.choice([0, 0, 100, 20000]))
    except OSError:
        os._exit(1)
"""


@pytest.mark.parametrize("seed", range(12))
def test_a_worker_that_forges_everything_harms_no_daemon(seed, tmp_path, monkeypatch):
    script = tmp_path / "forger.py"
    script.write_text(FORGER.replace("SEED", str(seed)))
    header = _python._header
    monkeypatch.setattr(_python, "_header", lambda *given: {**header(*given), "script": str(script)})
    output = (penstock.TensorSpec((None,), penstock.string), penstock.TensorSpec((None, 3), np.float32), penstock.TensorSpec((), np.bool_))
    dataset = range_of(64).map(twice, python=True, output=output, workers=2).batch(8, drop_remainder=True)
    daemon = _daemon.private_socket() and _daemon.private_process()
    with pytest.raises(penstock.Error):
        list(dataset.take(4))
    assert _daemon.private_process() == daemon and os.path.exists(f"/proc/{daemon}")
    assert [int(x) for x in range_of(3)] == [0, 1, 2]


def test_a_function_of_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "f").write_bytes(b"penstock python\n" + bytes(100))
    text = f'stage {{ range {{ stop: 3 }} }} stage {{ python {{ function {{ file: "{tmp_path / "f"}" output {{ name: "a" dtype: "int64" }} }} }} }}'
    with pytest.raises(penstock.InvalidArgumentError, match="no sealed memory file"):
        from penstock import _control

        _control.validate(_daemon.private_socket(), "check", text)


def test_a_script_without_a_guard_and_its_own_functions():
    """Functions of __main__ travel by value, and nothing of the script runs again."""
    if _python._cloudpickle() is None:
        pytest.skip("needs cloudpickle")
    script = "import penstock\nprint('once', flush=True)\ndef add(x): return x + 1\nprint([int(x) for x in penstock.Dataset.range(3).map(add, python=True)])\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "once\n[1, 2, 3]\n", done.stderr
