"""A daemon that the system gives no more threads, memory or huge pages: faults 35, 36, 37 and 61.

failing_calls.c, preloaded, makes the n-th call of a kind fail.
"""

import mmap
import operator
import os
import pathlib
import signal
import struct
import subprocess

import pytest

from programs import Daemon, Penstock, children, eventually
from test_return import expected, rows

penstock = pytest.importorskip("penstock")

KINDS = ["thread", "memory_file", "map", "allocate", "huge_pages", "affinity", "priority", "fork", "unlink", "pidfd"]
MANY = 1 << 40


class FailingCalls:
    """The counters of failing_calls.c."""

    def __init__(self, folder):
        self.library = folder / "failing_calls.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", self.library,
                        pathlib.Path(__file__).parent / "failing_calls.c"], check=True)
        self.path = folder / "failing_calls"
        self.path.write_bytes(bytes(4096))
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)

    def arm(self, kind, passing=0, failing=1):
        """After so many more calls so many fail."""
        at = 24 * KINDS.index(kind)
        struct.pack_into("<q", self.page, at + 8, 0)
        struct.pack_into("<q", self.page, at + 16, 0)
        struct.pack_into("<q", self.page, at, passing)
        struct.pack_into("<q", self.page, at + 8, failing)

    def disarm(self, kind):
        """How many have failed since it was armed."""
        at = 24 * KINDS.index(kind)
        struct.pack_into("<q", self.page, at + 8, 0)
        return struct.unpack_from("<q", self.page, at + 16)[0]

    def failed(self, kind):
        return struct.unpack_from("<q", self.page, 24 * KINDS.index(kind) + 16)[0]


@pytest.fixture
def failing(tmp_path, monkeypatch):
    calls = FailingCalls(tmp_path)
    monkeypatch.setenv("FAILING_CALLS", str(calls.path))
    return calls


@pytest.fixture
def start(tmp_path, failing, monkeypatch):
    """Starts a daemon under failing_calls.c."""
    started = []

    def run(*options, **settings):
        monkeypatch.setenv("LD_PRELOAD", str(failing.library))
        started.append(Daemon(tmp_path / "penstock.sock", *options, **settings))
        monkeypatch.delenv("LD_PRELOAD")
        assert started[-1].is_ready
        return started[-1]

    yield run
    for daemon in started:
        daemon.stop()


def endless(counter, name="counter", workers=2):
    return counter(name, more=f"workers: {workers} stage {{ repeat {{}} }}")


def take(loader, first, count):
    for step in range(first, first + count):
        assert rows(next(loader)) == expected(step)


def test_fault_61_no_thread_for_a_pipeline_is_its_error_alone(tmp_path, counter, start, failing):
    daemon = start("--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=30)
    other = endless(counter, "other", workers=3)
    # One for each worker, and one that changes from phase to phase.
    for passing in range(4):
        failing.arm("thread", passing, MANY)
        refused = command("create", other)
        assert failing.disarm("thread") > 0
        assert refused.code != 0 and "no more threads" in refused.err and "pids.max" in refused.err, refused
        take(loader, 5 * passing, 5)
        assert "other" not in command("list").out
    assert command("create", other).code == 0
    take(penstock.attach("other", daemon.socket, timeout=30), 0, 5)


def test_fault_61_no_thread_for_more_workers(tmp_path, counter, start, failing):
    daemon = start("--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=30)
    failing.arm("thread", 1, MANY)
    refused = command("update", "counter", "--workers", "5")
    assert failing.disarm("thread") == 1
    assert refused.code != 0 and "worker 4 of 5" in refused.err, refused
    take(loader, 0, 20)
    assert "workers     2" in command("stats", "counter").out
    assert command("update", "counter", "--workers", "5").code == 0
    take(loader, 20, 20)


def test_fault_61_no_thread_for_one_who_is_behind(tmp_path, counter, start, failing):
    daemon = start("--log-level", "error")
    assert Penstock(tmp_path, daemon.socket)("create", endless(counter)).code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=30)
    take(loader, 0, 1)
    cursor = loader.state_dict()["cursor"]
    take(loader, 1, 30)
    failing.arm("thread", 0, MANY)
    with pytest.raises(penstock.ResourceExhaustedError, match="no more threads"):
        penstock.attach("counter", daemon.socket, timeout=30, cursor=cursor)
    failing.disarm("thread")
    take(loader, 31, 10)
    take(penstock.attach("counter", daemon.socket, timeout=30, cursor=cursor), 1, 10)


def test_fault_61_a_daemon_without_threads_says_so_at_its_start(tmp_path, failing, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(failing.library))
    failing.arm("thread", 0, MANY)
    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error")
    assert daemon.process.wait(60) == 1
    assert "no more threads" in daemon.process.stderr.read()


@pytest.mark.parametrize("kind", ["memory_file", "map"])
def test_fault_35_no_memory_for_a_ring_is_its_pipelines_error_alone(tmp_path, counter, start, failing, kind):
    daemon = start("--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=30)
    other = endless(counter, "other")
    for passing in range(100):
        failing.arm(kind, passing)
        created = command("create", other)
        if failing.disarm(kind) == 0:
            break
        take(loader, 2 * passing, 2)
        if created.code == 0:
            assert command("delete", "other").code == 0  # it does without
        else:
            assert "shared memory" in created.err, created
    else:
        pytest.fail("a creation has no end")
    assert passing > 0 and created.code == 0


def test_fault_35_no_memory_at_the_nth_allocation_gives_no_wrong_batch(tmp_path, counter, start, failing):
    daemon = start("--supervise", "--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=60)
    taken = 0
    deaths = 0
    for passing in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610]:
        before = children(daemon.pid)
        # Three deaths under one pipeline would set it aside (test_budgets.py), wherever the allocation was.
        pathlib.Path(f"{daemon.socket}.state/counter.deaths").unlink(missing_ok=True)
        failing.arm("allocate", passing)
        command("stats", "counter")  # work that allocates; it may fail with the daemon
        while failing.failed("allocate") == 0:
            take(loader, taken, 1)
            taken += 1
            command("stats", "counter")
        failing.disarm("allocate")
        take(loader, taken, 12)
        taken += 12
        eventually(lambda: len(children(daemon.pid)) == 1)
        deaths += children(daemon.pid) != before
    # Whatever C++ allocates ends the daemon, whose successor goes on.
    assert deaths > 0 and loader.stats()["reconnects"] > 0


def test_fault_36_no_huge_pages_is_told_once(tmp_path, counter, start, failing):
    failing.arm("huge_pages", 0, MANY)
    daemon = start()
    command = Penstock(tmp_path, daemon.socket)
    wide = "ring { slots: 3 } stage { range { stop: 4000000 } } stage { batch { batch_size: 400000 } } stage { repeat {} }"
    for name in ["first", "second"]:
        (tmp_path / f"{name}.textproto").write_text(f'name: "{name}" {wide}')
        assert command("create", f"{name}.textproto").code == 0
        batch = next(penstock.attach(name, daemon.socket, timeout=30))
        assert batch[399999] == 399999
        assert "without huge pages" in command("stats", name).out
    assert failing.disarm("huge_pages") > 1
    daemon.stop()
    assert daemon.process.stderr.read().count("no huge pages") == 1


def test_fault_37_affinity_and_priority_refused(tmp_path, counter, start, failing):
    failing.arm("affinity", 0, MANY)
    failing.arm("priority", 0, MANY)
    daemon = start("--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    take(penstock.attach("counter", daemon.socket, timeout=30), 0, 30)
    assert f"workers     {os.cpu_count()}" in command("stats", "counter").out
    assert failing.disarm("affinity") > 0 and failing.disarm("priority") > 0


@pytest.mark.parametrize("kind", ["fork", "thread"])
def test_fault_61_a_supervisor_does_not_give_up_a_daemon_that_cannot_begin_again(tmp_path, counter, start, failing, kind):
    daemon = start("--supervise", "--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=60)
    take(loader, 0, 5)
    # It counts as one that has served after half a second.
    assert command("profile", "counter", "--seconds", 1, "--out", "profile.json").code == 0
    failing.arm(kind, 0, MANY)
    [child] = children(daemon.pid)
    os.kill(child, signal.SIGKILL)
    eventually(lambda: failing.failed(kind) > 2)
    assert daemon.process.poll() is None
    failing.disarm(kind)
    take(loader, 5, 20)


def test_fault_30_a_pipeline_that_would_come_back_is_not_deleted(tmp_path, counter, start, failing):
    daemon = start("--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=60)
    failing.arm("unlink", 0, MANY)
    refused = command("delete", "counter")
    assert refused.code == 1 and "the pipeline is not deleted, as it would come back after a restart" in refused.err, refused
    assert "counter.pipeline: Read-only file system" in refused.err, refused
    take(loader, 0, 20)
    failing.disarm("unlink")
    assert command("delete", "counter").code == 0
    assert not command("list").out.count("counter")


# --- Python functions: fault 64 ------------------------------------------------------------------


def negated(daemon, name, function=operator.neg):
    dataset = penstock.Dataset.range(40).map(function, python=True, output=penstock.TensorSpec((), "int64"), workers=1).batch(5)
    return dataset.loader(socket=daemon.socket, name=name)


NEGATED = [[-(5 * i + j) for j in range(5)] for i in range(8)]


def test_fault_64_no_memory_files_for_a_python_worker(start, failing):
    daemon = start("--log-level", "error")
    told = []
    # One after the other of all that are made: the ring's, the worker's desk, where its stack goes.
    for passing in range(60):
        failing.arm("memory_file", passing)
        try:
            found = [batch.tolist() for batch in negated(daemon, f"starved-{passing}")]
        except penstock.Error as error:
            told.append(str(error))
        else:
            assert found == NEGATED
        if failing.disarm("memory_file") == 0:
            break
    assert any("no memory file for a Python worker process" in text for text in told), told
    assert [batch.tolist() for batch in negated(daemon, "fed")] == NEGATED


class ExitsAt:
    """Negates a number; ends its process at one of them, the first time."""

    def __init__(self, folder, at):
        self.file, self.at = str(folder / "exited"), at

    def __call__(self, x):
        if x == self.at and not os.path.exists(self.file):
            open(self.file, "w").close()
            os._exit(3)
        return -x


def test_fault_64_a_kernel_that_tells_no_ends_of_processes(start, failing, tmp_path):
    daemon = start("--log-level", "error")
    failing.arm("pidfd", 0, MANY)
    assert [batch.tolist() for batch in negated(daemon, "unwatched", ExitsAt(tmp_path, 17))] == NEGATED
    assert failing.disarm("pidfd") >= 2
    assert (tmp_path / "exited").exists()
