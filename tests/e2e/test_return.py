"""Death and return: a daemon that is killed comes back with its pipelines, and trainers go on with the next batch."""

import os
import signal
import threading
import time

import pytest

from programs import Daemon, Penstock, children, eventually

penstock = pytest.importorskip("penstock")

class Supervised:
    """penstockd --supervise; `kill` takes the daemon, not its supervisor."""

    def __init__(self, folder, *options):
        self.daemon = Daemon(folder / "penstock.sock", "--supervise", "--log-level", "error", *options)
        self.socket = self.daemon.socket

    @property
    def child(self):
        found = children(self.daemon.pid)
        return found[0] if found else None

    def kill(self):
        """Returns when the next one is there."""
        before = self.child
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self.child not in (None, before))

    def stop(self):
        return self.daemon.stop()


@pytest.fixture
def supervised(tmp_path):
    one = Supervised(tmp_path)
    assert one.daemon.is_ready
    yield one
    one.stop()


@pytest.fixture
def command(tmp_path, supervised):
    return Penstock(tmp_path, supervised.socket)


def rows(batch):
    return [int(n) for n in batch["n"]]


def expected(step, records=42, batch=4):
    """The rows of a step of the endless counter: a short batch ends each pass."""
    steps = -(-records // batch)
    first = step % steps * batch
    return list(range(first, min(first + batch, records)))


def attach(socket, **options):
    return penstock.attach("counter", socket=socket, timeout=60, **options)


def test_fault_48_a_killed_daemon_is_a_pause(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(supervised.socket)
    for step in range(20):
        assert rows(next(loader)) == expected(step)
    for step in range(20, 60):
        if step % 10 == 0:
            supervised.kill()
        batch = next(loader)
        assert (loader.step, rows(batch)) == (step, expected(step))
    assert loader.stats()["reconnects"] == 4


def test_fault_48_old_batches_stay_readable(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(supervised.socket)
    held = [next(loader)["n"] for _ in range(2)]
    supervised.kill()
    for step in range(2, 100):
        assert rows(next(loader)) == expected(step)
    assert [list(n) for n in held] == [expected(0), expected(1)]


def test_fault_49_trainers_at_different_positions_go_on_where_they_were(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    first, second = attach(supervised.socket), attach(supervised.socket)
    for step in range(4):
        assert rows(next(first)) == expected(step)
    assert rows(next(second)) == expected(0)
    supervised.kill()
    results = []

    def take(loader, start):
        results.append([rows(next(loader)) for _ in range(start, 50)])

    threads = [threading.Thread(target=take, args=(first, 4)), threading.Thread(target=take, args=(second, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=len) == [[expected(s) for s in range(4, 50)], [expected(s) for s in range(1, 50)]]


def test_a_drawn_seed_comes_back(supervised, command, counter, tmp_path):
    spec = counter()
    spec.write_text(spec.read_text().replace("stage { parse_example",
                                             "stage { shuffle { buffer_size: 20 } } stage { parse_example") + "stage { repeat {} }")
    assert command("create", spec).code == 0
    loader = attach(supervised.socket)
    seen = []
    while len(seen) < 11:
        seen.append(rows(next(loader)))
        if len(seen) in (3, 8):
            supervised.kill()
    assert sorted(sum(seen, [])) == list(range(42))


def test_the_end_of_a_stream_is_the_end_after_a_return(supervised, command, counter):
    assert command("create", counter()).code == 0
    loader = attach(supervised.socket)
    for step in range(11):
        assert rows(next(loader)) == expected(step)
    supervised.kill()
    assert list(loader) == []


def test_a_stopped_daemon_that_is_started_again_is_a_pause(tmp_path, counter):
    path = tmp_path / "penstock.sock"
    first = Daemon(path, "--log-level", "error")
    assert Penstock(tmp_path, first.socket)("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(first.socket)
    assert rows(next(loader)) == expected(0)
    assert first.stop() == 0
    second = Daemon(path, "--log-level", "error")
    for step in range(1, 30):
        assert rows(next(loader)) == expected(step)
    second.stop()


def test_fault_48_unavailable_when_no_daemon_returns(tmp_path, counter):
    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error")
    assert Penstock(tmp_path, daemon.socket)("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(daemon.socket, reconnect=0.5)
    next(loader)
    daemon.kill()
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(penstock.UnavailableError, match="gone away.*no attempt to come back succeeded"):
            for _ in range(1000):
                next(loader)
    assert time.monotonic() - started >= 0.4
