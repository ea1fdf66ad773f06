"""Fault 64 in rows of Python functions: what is done to a pipeline while one of its rows hangs, memory without end, results that are too large, and what workers lack."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import penstock
from penstock._dataset import _python
from penstock._running import _daemon
from processes import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import children  # noqa: E402

# Functions of this module travel by its name, as workers have pytest's sys.path.

INT = penstock.TensorSpec((), np.int64)


def twice(x):
    return 2 * x


class WaitsAt:
    """Twice a number; at one of them it says in a file that it is there, and hangs until another file is there."""

    def __init__(self, folder, at):
        self.folder, self.at = str(folder), at

    def __call__(self, x):
        if x == self.at:
            import time

            pathlib.Path(self.folder, "arrived").touch()
            while not os.path.exists(os.path.join(self.folder, "gate")):
                time.sleep(0.005)
        return 2 * x


def command(*words):
    """The command's exit code and what it says, at the private daemon."""
    done = subprocess.run(
        [pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstock", "--socket", _daemon.private_socket(), *words], capture_output=True, text=True, timeout=120
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


class Hanging:
    """A named pipeline that is read in a thread, one of whose rows hangs."""

    def __init__(self, folder, name, at=45, stop=100):
        # The private daemon has to be there.
        assert [int(x) for x in penstock.Dataset.range(2)] == [0, 1]
        self.folder, self.name = folder, name
        self.batches, self.error = [], None
        dataset = penstock.Dataset.range(stop).map(WaitsAt(folder, at), python=True, output=INT, workers=1).batch(10)
        self.loader = dataset.loader(socket=_daemon.private_socket(), name=name)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        wait_until((folder / "arrived").exists, 60)

    def read(self):
        try:
            for batch in self.loader:
                self.batches.append(np.asarray(batch).tolist())
                if len(self.batches) == len(EXPECTED):
                    break
        except penstock.Error as error:
            self.error = error

    def go_on(self):
        (self.folder / "gate").touch()

    def ended(self):
        self.thread.join(60)
        assert not self.thread.is_alive()


EXPECTED = [[2 * (10 * i + j) for j in range(10)] for i in range(10)]


def workers_of(name):
    """What `stats` says of the pipeline's workers."""
    code, text = command("stats", name)
    assert code == 0, text
    return next(line for line in text.splitlines() if "Python workers" in line)


class LoadsWhen:
    """Twice a number. A worker has loaded it when a file is there."""

    def __init__(self, gate):
        self.gate = str(gate)

    def __setstate__(self, state):
        import time

        self.__dict__.update(state)
        while not os.path.exists(self.gate):
            time.sleep(0.005)

    def __call__(self, x):
        return 2 * x


def test_statistics_say_for_how_long_a_function_is_loaded(tmp_path):
    assert [int(x) for x in penstock.Dataset.range(2)] == [0, 1]
    dataset = penstock.Dataset.range(100).map(LoadsWhen(tmp_path / "gate"), python=True, output=INT, workers=1).batch(10)
    (tmp_path / "spec.textproto").write_text(dataset.to_textproto("loads"))
    assert command("create", str(tmp_path / "spec.textproto"))[0] == 0
    try:
        wait_until(lambda: re.search(r"; one has been loading for [1-9]\d* s", workers_of("loads")), 60)
        text = command("explain", "loads")[1]
        assert re.search(r"stage python has 1 Python worker of .*; one has been loading the function for \d+\.\d s so far", text), text
        (tmp_path / "gate").touch()
        with penstock.attach("loads", _daemon.private_socket(), timeout=60) as loader:
            assert [np.asarray(batch).tolist() for batch in loader] == EXPECTED
        assert "loading" not in workers_of("loads") + command("explain", "loads")[1]
    finally:
        (tmp_path / "gate").touch()
        assert command("delete", "loads")[0] == 0


def test_a_pipeline_is_paused_and_resumed_while_a_row_hangs(tmp_path):
    hanging = Hanging(tmp_path, "paused-while-it-hangs")
    code, text = command("pause", hanging.name)
    assert code == 0, text
    assert "paused" in command("list")[1]
    hanging.go_on()
    assert command("resume", hanging.name)[0] == 0
    hanging.ended()
    assert hanging.error is None and hanging.batches == EXPECTED


def test_a_pipeline_is_updated_while_a_row_hangs(tmp_path):
    # Of a stream whose end is being made nothing can be changed.
    hanging = Hanging(tmp_path, "updated-while-it-hangs", stop=1_000_000)
    code, text = command("update", hanging.name, "--workers", "2")
    assert code == 0, text
    # The row is neither given up nor done again.
    assert "1 of at most 1 Python worker" in workers_of(hanging.name)
    hanging.go_on()
    hanging.ended()
    assert hanging.error is None and hanging.batches == EXPECTED
    assert command("delete", hanging.name)[0] == 0


def test_a_pipeline_is_deleted_while_a_row_hangs(tmp_path):
    before = set(children.children_of(_daemon.private_process())) if _daemon.private_socket() else set()
    hanging = Hanging(tmp_path, "deleted-while-it-hangs")
    workers = set(children.children_of(_daemon.private_process())) - before
    assert workers
    code, text = command("delete", hanging.name)
    assert code == 0, text
    hanging.ended()
    assert isinstance(hanging.error, penstock.NotFoundError), hanging.error
    assert hanging.batches == EXPECTED[: len(hanging.batches)]
    wait_until(lambda: not any(os.path.exists(f"/proc/{worker}") for worker in workers), 60)


def test_a_row_that_hangs_holds_up_no_other_pipeline(tmp_path):
    hanging = Hanging(tmp_path, "hangs-beside-others")
    other = penstock.Dataset.range(100).map(twice, python=True, output=INT, workers=1).batch(10)
    assert [np.asarray(batch).tolist() for batch in other] == EXPECTED
    hanging.go_on()
    hanging.ended()
    assert hanging.batches == EXPECTED


INTERRUPTED = """
    import os, sys
    import numpy as np
    import penstock
    from penstock._running import _daemon
    sys.path.insert(0, sys.argv[1])
    from python_faults_test import WaitsAt

    dataset = penstock.Dataset.range(100).map(WaitsAt(sys.argv[2], 45), python=True, output=penstock.TensorSpec((), np.int64), workers=1).batch(10)
    iterator = iter(dataset)
    try:
        for batch in iterator:
            pass
        print("ended")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    iterator.close()
    # The daemon has not seen it, and serves on.
    print(sum(int(x) for x in penstock.Dataset.range(5)), _daemon.private_process(), flush=True)
"""


def test_ctrl_c_while_a_row_hangs_comes_to_the_program_alone(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(pathlib.Path(__file__).parent), str(tmp_path)], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_until((tmp_path / "arrived").exists, 60)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    interrupted, numbers = out.splitlines()
    total, daemon = numbers.split()
    assert interrupted == "interrupted" and total == "10" and process.returncode == 0
    # Neither the daemon nor a worker is left.
    wait_until(lambda: not os.path.exists(f"/proc/{daemon}"), 60)


class ChangesFolder:
    """At one number it goes to another folder, which is removed then; workers find what they need all the same."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, x):
        if x == 3:
            os.makedirs(self.folder)
            os.chdir(self.folder)
            os.rmdir(self.folder)
        import fractions

        return int(fractions.Fraction(2 * x))


def test_a_function_that_changes_the_folder(tmp_path):
    here = os.getcwd()
    dataset = penstock.Dataset.range(20).map(ChangesFolder(tmp_path / "gone"), python=True, output=INT, workers=1, max_rows_per_worker=5)
    # Those that are started then begin where the first one did.
    assert [int(x) for x in dataset] == [2 * x for x in range(20)]
    assert os.getcwd() == here


PRINTS = """
    import os, sys
    import numpy as np
    import penstock
    sys.path.insert(0, sys.argv[1])
    from python_faults_test import Prints

    dataset = penstock.Dataset.range(16).map(Prints(), python=True, output=penstock.TensorSpec((), np.int64), workers=1)
    print(sum(int(x) for x in dataset), flush=True)
"""


class Prints:
    """64 MiB for each number, to its standard output and by turns to its standard error."""

    def __call__(self, x):
        file = (sys.stdout, sys.stderr)[x % 2]
        for _ in range(64):
            file.write("penstock" * (1 << 17))
        file.flush()
        return x


def test_a_gigabyte_that_is_printed_comes_where_the_daemon_writes():
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(PRINTS), str(pathlib.Path(__file__).parent)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    printed = 0
    try:
        while data := process.stderr.read1(1 << 20):
            printed += len(data)
        assert process.stdout.read() == b"120\n"
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert printed >= 1 << 30


def test_another_version_is_what_the_command_allows(tmp_path):
    def dataset(version):
        return penstock.Dataset.range(100).map(twice, python=True, output=INT, version=version, seed=1).batch(10)

    with iter(dataset("1")) as iterator:
        assert np.asarray(next(iterator)).tolist() == EXPECTED[0]
        (tmp_path / "cursor").write_bytes(iterator.state_dict()["cursor"])
    changed = dataset("2")
    (tmp_path / "spec.textproto").write_text(changed.to_textproto("changed-work"))
    words = ["create", str(tmp_path / "spec.textproto"), "--resume", str(tmp_path / "cursor")]
    code, text = command(*words)
    assert code != 0 and "another stream: its work ops (map, parse_example) or their options differ; with --allow-changed-work" in text
    code, text = command(*words, "--allow-changed-work")
    assert code == 0, text
    loader = penstock.attach("changed-work", _daemon.private_socket(), timeout=60)
    assert np.asarray(next(loader)).tolist() == EXPECTED[1]
    loader.close()
    # By their code's hashes, too, they are told apart.
    (hash_of_code,) = set(re.findall(r'code: "(\w+)"', changed.to_textproto()))
    assert f"# code: {hash_of_code} of the Python function twice\n" in command("get", "changed-work")[1]
    assert command("delete", "changed-work")[0] == 0


# --- memory -------------------------------------------------------------------------------------


def four_gib(x):
    # Pages that nobody writes to are none.
    return np.zeros(1 << 32, np.uint8) if x == 3 else np.zeros(2, np.uint8)


def test_a_result_of_four_gib_is_refused_before_anything_is_copied():
    dataset = penstock.Dataset.range(6).map(four_gib, python=True, output=penstock.TensorSpec((None,), np.uint8), workers=1)
    with pytest.raises(penstock.DataLossError, match="4294967296 bytes for 'value', more than a row may have: 4294967295"):
        list(dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [len(x) for x in dataset.ignore_errors()] == [2] * 5


def test_elements_of_four_gib_together_are_refused():
    def described(sizes):
        return penstock.Dataset.range(1).flat_map(Yields(sizes), python=True, output=penstock.TensorSpec((None,), np.uint8), workers=1)

    with pytest.raises(penstock.DataLossError, match="more than 4294967295 bytes of elements for one"):
        list(described([3, 1 << 32]))
    assert [len(x) for x in described([3, 5])] == [3, 5]


class Yields:
    def __init__(self, sizes):
        self.sizes = sizes

    def __call__(self, x):
        for size in self.sizes:
            yield np.zeros(size, np.uint8)


@pytest.fixture
def narrow():
    """A control group of 64 MiB, whose processes the kernel kills when they want more."""
    parent = pathlib.Path("/sys/fs/cgroup/memory")
    limit = "memory.limit_in_bytes"
    if not parent.is_dir():
        parent, limit = parent.parent, "memory.max"
    group = parent / f"penstock-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        try:
            (group / limit).write_text(str(64 << 20))
        except OSError as error:
            pytest.skip(f"no control group with a limit of memory: {error}")
        yield group
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), 60)
        group.rmdir()


class Grows:
    """At one number it goes into a control group, and takes memory without end."""

    def __init__(self, group):
        self.group = str(group)

    def __call__(self, x):
        if x == 37:
            pathlib.Path(self.group, "cgroup.procs").write_text(str(os.getpid()))
            held = []
            while True:
                held.append(bytearray(os.urandom(1 << 20)))
        return x


def test_a_row_for_which_the_kernel_kills_its_process_costs_itself(narrow):
    dataset = penstock.Dataset.range(100).map(Grows(narrow), python=True, output=INT, workers=1)
    with pytest.raises(penstock.DataLossError, match=r"Grows ended its process \(SIGKILL\) twice"):
        list(dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [int(x) for x in dataset.ignore_errors()] == [x for x in range(100) if x != 37]


# --- what workers lack --------------------------------------------------------------------------


def test_a_function_that_needs_cloudpickle_says_so_where_there_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert _python._cloudpickle() is None
    limit = 3
    with pytest.raises(TypeError, match=r"is a lambda, which travels to worker processes by the package cloudpickle: pip install cloudpickle"):
        penstock.Dataset.range(3).map(lambda x: x + limit, python=True, output=INT)
    # Others need none.
    assert [int(x) for x in penstock.Dataset.range(3).map(twice, python=True, output=INT)] == [0, 2, 4]


def test_workers_that_find_no_cloudpickle_say_so(tmp_path, monkeypatch):
    pytest.importorskip("cloudpickle")
    (tmp_path / "cloudpickle").mkdir()
    (tmp_path / "cloudpickle/__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'cloudpickle'\", name='cloudpickle')\n")
    limit = 3
    # It is not looked for again here.
    monkeypatch.syspath_prepend(tmp_path)
    dataset = penstock.Dataset.range(3).map(lambda x: x + limit, python=True, output=INT)
    with pytest.raises(penstock.FailedPreconditionError, match="No module named 'cloudpickle'; the function travels by it, and workers do not find it"):
        list(dataset)
