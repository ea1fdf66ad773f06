"""Consumers that are slow, frozen or behind, and what their group's policy makes of them."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from programs import Daemon, Penstock, eventually
from test_return import Supervised

penstock = pytest.importorskip("penstock")

# Takes batches and holds the last ones; a line on its input lets it take one more.
FROZEN = """
import sys
import penstock
loader = penstock.attach("ranges", socket=sys.argv[1], **eval(sys.argv[2]))
kept = [next(loader) for _ in range(2)]
print("holds", flush=True)
for line in sys.stdin:
    try:
        batch = next(loader)
        print("step", loader.step, int(batch[0]), [[int(n) for n in one] for one in kept], loader.stats()["skipped"], flush=True)
    except penstock.Error as error:
        print(type(error).__name__, [[int(n) for n in one] for one in kept], flush=True)
"""


@pytest.fixture
def server(tmp_path):
    one = Supervised(tmp_path)
    assert one.daemon.is_ready
    path = tmp_path / "ranges.textproto"
    path.write_text('name: "ranges" stage { range { stop: 1000000 } } stage { batch { batch_size: 5 } }')
    assert Penstock(tmp_path, one.socket)("create", path).code == 0
    yield one
    one.stop()


@pytest.fixture
def freeze(server):
    """A consumer that holds two batches and is stopped; `thaw` lets it ask for one more."""
    frozen = []

    def start(**options):
        process = subprocess.Popen([sys.executable, "-c", FROZEN, server.socket, repr(options)], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        frozen.append(process)
        assert process.stdout.readline() == "holds\n"
        os.kill(process.pid, signal.SIGSTOP)
        return process

    yield start
    for process in frozen:
        process.kill()
        process.wait(60)
        process.stdin.close()
        process.stdout.close()


def thaw(process):
    os.kill(process.pid, signal.SIGCONT)
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


KEPT = "[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]"


def attach(server, timeout=60, **options):
    return penstock.attach("ranges", socket=server.socket, timeout=timeout, **options)


def check(loader, first, count):
    for step in range(first, first + count):
        batch = next(loader)
        assert (loader.step, int(batch[0]), int(batch[4])) == (step, 5 * step, 5 * step + 4)


def test_fault_39_a_frozen_consumer_is_detached_and_its_views_stay(server, freeze, tmp_path):
    process = freeze(slow="detach")
    loader = attach(server)
    start = loader.state_dict()["step"] + 1
    check(loader, start, 300)  # many times the ring's depth: the quarantined slots are never used
    ready, slots = re.search(r"ring (\d+) of (\d+) slots ready", Penstock(tmp_path, server.socket)("top", "ranges", "--count", 1).out).groups()
    assert int(ready) <= int(slots), "nothing is ready for who was detached"
    assert thaw(process) == f"DetachedError {KEPT}\n"
    check(loader, start + 300, 100)


def test_fault_39_a_frozen_consumer_that_may_lag_goes_on_where_it_was(server, freeze):
    process = freeze(slow="block", lag=0.3)
    loader = attach(server)
    start = loader.state_dict()["step"] + 1
    check(loader, start, 300)
    # By replay: its very next batch.
    assert thaw(process) == f"step 2 10 {KEPT} 0\n"
    check(loader, start + 300, 100)


def test_fault_39_a_frozen_consumer_that_skips(server, freeze):
    process = freeze(slow="skip")
    loader = attach(server)
    start = loader.state_dict()["step"] + 1
    check(loader, start, 300)
    words = thaw(process).split(maxsplit=3)
    step = int(words[1])
    assert words[0] == "step" and step > 100 and int(words[2]) == 5 * step
    assert words[3].startswith(KEPT)
    assert int(words[3].split()[-1]) == step - 2


def test_a_lone_consumer_may_pause_for_ever(server, freeze):
    process = freeze(slow="detach")
    # Nobody waits: nothing happens to it.
    assert thaw(process) == f"step 2 10 {KEPT} 0\n"


def test_a_consumer_that_blocks_is_waited_for(server, freeze):
    process = freeze(slow="block", lag=1000)
    loader = attach(server, timeout=0.7)
    with pytest.raises(penstock.DeadlineExceededError):
        for _ in range(1000):
            next(loader)
    assert thaw(process).startswith("step 2 10")


def test_who_is_behind_is_served_by_replay_until_it_meets_the_others(server):
    first = attach(server)
    check(first, 0, 3)
    cursor = first.cursor  # the next step is 3
    check(first, 3, 100)
    late = attach(server, cursor=cursor)
    assert late.state_dict() == {"cursor": cursor, "step": 2}
    check(late, 3, 100)
    steps = iter(range(103, 1_000_000))

    def both_take_one():
        step = next(steps)
        check(first, step, 1)
        check(late, step, 1)
        return late.stats()["reconnects"] >= 1  # it reads the shared ring now

    eventually(both_take_one)


def test_a_loader_goes_back_alone(server):
    loader = attach(server)
    check(loader, 0, 5)
    state = loader.state_dict()
    kept = next(loader)
    check(loader, 6, 50)
    loader.load_state_dict(state)
    check(loader, 5, 50)
    assert [int(n) for n in kept] == [25, 26, 27, 28, 29]
    with pytest.raises(penstock.InvalidArgumentError):
        loader.load_state_dict({"cursor": b"nothing"})


def test_a_cursor_far_ahead_is_gone_to(server):
    loader = attach(server)
    check(loader, 0, 500)
    cursor = loader.cursor
    loader.close()
    # A pipeline whose ring stands elsewhere: one behind the other.
    back = attach(server)
    again = attach(server, cursor=cursor)
    check(again, 500, 3)
    assert int(next(back)[0]) >= 0


def test_a_cursor_of_another_stream_is_refused(server, tmp_path):
    other = tmp_path / "other.textproto"
    other.write_text('name: "other" stage { range { stop: 77 } } stage { batch { batch_size: 5 } }')
    assert Penstock(tmp_path, server.socket)("create", other).code == 0
    loader = penstock.attach("other", socket=server.socket)
    next(loader)
    with pytest.raises(penstock.FailedPreconditionError):
        attach(server, cursor=loader.cursor)
    with pytest.raises(penstock.InvalidArgumentError):
        attach(server, cursor=b"garbage")


@pytest.fixture
def stopped(server):
    """Stops the daemon, and lets it go on."""
    yield lambda: os.kill(server.child, signal.SIGSTOP)
    os.kill(server.child, signal.SIGCONT)


def test_fault_48_a_frozen_daemon_is_waited_for_no_longer_than_was_asked(server, stopped):
    loader = attach(server, timeout=1)
    check(loader, 0, 1)
    state = loader.state_dict()
    check(loader, 1, 1)
    stopped()
    with pytest.raises(penstock.UnavailableError, match="did not answer in 1000 ms"):
        attach(server, timeout=1)
    with pytest.raises(penstock.UnavailableError, match="did not answer in 1000 ms"):
        loader.load_state_dict(state)
    os.kill(server.child, signal.SIGCONT)
    # What it asked for is what it goes on with.
    check(loader, 1, 3)


def test_a_position_that_was_not_answered_in_time_is_known_inside_of_a_batch_too(server, stopped):
    loader = attach(server, timeout=1, batch_size=2)
    for first in range(0, 12, 2):
        assert int(next(loader)[0]) == first
    state = loader.state_dict()
    for first in range(12, 40, 2):
        assert int(next(loader)[0]) == first
    stopped()
    with pytest.raises(penstock.UnavailableError, match="did not answer in 1000 ms"):
        loader.load_state_dict(state)
    os.kill(server.child, signal.SIGCONT)
    # Its rows are the third and fourth of five.
    assert int(next(loader)[0]) == 12
    again = attach(server, batch_size=2, cursor=loader.cursor)
    assert [int(next(again)[0]) for _ in range(4)] == [int(next(loader)[0]) for _ in range(4)] == [14, 16, 18, 20]


def test_fault_48_a_signal_ends_the_wait_for_a_frozen_daemon(server, stopped, alarm):
    loader = attach(server)
    check(loader, 0, 1)
    state = loader.state_dict()
    stopped()
    for wait in (lambda: attach(server, timeout=None), lambda: loader.load_state_dict(state)):
        alarm.ring()
        with pytest.raises(alarm.Rung):
            wait()
    os.kill(server.child, signal.SIGCONT)
    check(loader, 1, 3)


@pytest.mark.parametrize("words", [["delete", "ranges"], ["create", "ranges.textproto", "--name", "more"], ["validate", "ranges.textproto"],
                                   ["update", "ranges", "--workers", 1], ["drain", "ranges"], ["list"], ["stats", "ranges", "--follow"],
                                   ["top"], ["events"], ["events", "--follow"]],
                         ids=lambda words: "-".join(map(str, words)))  # fmt: skip
def test_fault_48_a_command_does_not_wait_for_a_frozen_daemon(server, stopped, tmp_path, words):
    stopped()
    result = Penstock(tmp_path, server.socket)(*words, PENSTOCK_ANSWER_SECONDS="0.6")
    assert result.code == 1 and "does not answer" in result.err and "(0.6 s)" in result.err, result


@pytest.mark.parametrize("words", [["events", "--follow"], ["stats", "ranges", "--follow", "--interval", "0.1"], ["top", "--interval", "0.1"]],
                         ids=lambda words: words[0])  # fmt: skip
def test_fault_48_a_command_that_goes_on_ends_when_the_daemon_freezes(server, stopped, tmp_path, words):
    command = Penstock(tmp_path, server.socket).command(*words)
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, PENSTOCK_ANSWER_SECONDS="0.6")) as process:  # fmt: skip
        assert process.stdout.readline()
        stopped()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "does not answer" in err and "(0.6 s)" in err, err


def test_fault_48_a_command_that_goes_on_stays_at_a_daemon_with_nothing_to_tell(server, tmp_path):
    command = Penstock(tmp_path, server.socket).command("events", "--follow", "--after", 1)
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, PENSTOCK_ANSWER_SECONDS="0.2")) as process:  # fmt: skip
        # It takes five times as long as the daemon may give no sign of life.
        assert Penstock(tmp_path, server.socket)("profile", "ranges", "--seconds", 1, "--out", "profile.json").code == 0
        assert Penstock(tmp_path, server.socket)("delete", "ranges").code == 0
        assert "deleted" in process.stdout.readline()
        process.kill()
        process.communicate(timeout=60)


def test_fault_48_python_does_not_start_a_pipeline_in_a_frozen_daemon(server, stopped):
    stopped()
    numbers = penstock.Dataset.range(10).batch(5).loader(socket=server.socket, timeout=1)
    with pytest.raises(penstock.UnavailableError, match="gave no sign of life in 1000 ms"):
        next(numbers)


# Preloaded into a daemon: files named "slow" are opened when the test says so.
SLOW_OPEN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void Wait(const char* path) {
  if (strstr(path, "slow.") == NULL) return;
  while (access(getenv("SLOW_OPEN"), F_OK) == 0) usleep(5000);
}
#define OPEN(name) \\
  int name(const char* path, int flags, ...) { \\
    va_list more; va_start(more, flags); const int mode = va_arg(more, int); va_end(more); \\
    Wait(path); \\
    return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode); \\
  }
OPEN(open) OPEN(open64)
"""


def test_a_command_waits_for_a_daemon_that_looks_at_files(tmp_path, monkeypatch, counter):
    (tmp_path / "slow_open.c").write_text(SLOW_OPEN)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "slow_open.so", tmp_path / "slow_open.c"], check=True)
    np.save(tmp_path / "slow.npy", np.arange(3.0))
    spec = tmp_path / "reads.textproto"
    spec.write_text('name: "reads" stage { range { stop: 9 } } stage { map { constant { name: "K" npy: "slow.npy" } out: "y = float64(value) * K" } }')
    waits = tmp_path / "waits"
    waits.touch()
    with monkeypatch.context() as preloaded:
        preloaded.setenv("SLOW_OPEN", str(waits))
        preloaded.setenv("LD_PRELOAD", str(tmp_path / "slow_open.so"))
        daemon = Daemon(tmp_path / "run" / "penstock.sock")
    try:
        command = Penstock(tmp_path, daemon.socket)
        assert command("create", counter("other", more="stage { repeat {} }")).code == 0
        command.environment["PENSTOCK_ANSWER_SECONDS"] = "0.3"
        with command.start("validate", spec) as validates:
            # It takes a second.
            assert command("profile", "other", "--seconds", 1, "--out", "profile.json").code == 0
            waits.unlink()
            out, err = validates.communicate(timeout=60)
        assert validates.returncode == 0, err
    finally:
        daemon.stop()


def test_a_command_waits_for_a_daemon_that_works(server, tmp_path):
    # It takes a second, in which nothing else is told.
    result = Penstock(tmp_path, server.socket)("profile", "ranges", "--seconds", 1, "--out", "profile.json", PENSTOCK_ANSWER_SECONDS="0.3")
    assert result.code == 0, result


def test_how_long_a_command_waits_is_a_number_of_seconds(server, tmp_path):
    result = Penstock(tmp_path, server.socket)("list", PENSTOCK_ANSWER_SECONDS="soon")
    assert result.code == 1 and "PENSTOCK_ANSWER_SECONDS" in result.err, result
