"""kill -9 of the daemon, of consumers, and of one pipeline."""

import os
import signal
import subprocess
import sys
import time

import pytest

from programs import children

penstock = pytest.importorskip("penstock")

# Takes one batch, says so, and holds it for ever.
HOLDER = """
import sys, time
import penstock
loader = iter(penstock.attach(sys.argv[1], socket=sys.argv[2]))
batch = next(loader)
print("holds", batch["n"][0], flush=True)
time.sleep(1000)
"""

# The same, and a child keeps its connection open.
FORKING_HOLDER = HOLDER.replace("time.sleep", """
import os
if os.fork() == 0:
    print("child", os.getpid(), flush=True)
time.sleep""")


def start_holder(program, name, socket):
    process = subprocess.Popen([sys.executable, "-c", program, name, socket], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("holds")
    return process


def test_fault_48_a_killed_daemon_is_unavailable_within_a_second(daemon, remote, counter):
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    loader = iter(penstock.attach("counter", socket=daemon.socket, reconnect=0))
    batch = next(loader)
    daemon.kill()
    killed = time.monotonic()
    with pytest.raises(penstock.UnavailableError):
        for _ in range(1000):  # the batches that were ready, then the error: never the end of the data
            next(loader)
    assert time.monotonic() - killed < 1
    assert list(batch["n"]) == [0, 1, 2, 3]


def test_a_stopped_daemon_is_unavailable(daemon, remote, counter):
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    loader = iter(penstock.attach("counter", socket=daemon.socket, reconnect=0))
    next(loader)
    assert daemon.stop() == 0
    with pytest.raises(penstock.UnavailableError):
        for _ in range(1000):
            next(loader)


@pytest.mark.parametrize("program", [HOLDER, FORKING_HOLDER])
def test_fault_38_a_killed_consumer_that_holds_a_batch_stalls_nobody(daemon, remote, counter, program):
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    holder = start_holder(program, "counter", daemon.socket)
    child = int(holder.stdout.readline().split()[1]) if program is FORKING_HOLDER else None
    loader = iter(penstock.attach("counter", socket=daemon.socket))
    next(loader)
    holder.kill()
    holder.wait(60)
    try:
        # Many times the ring's depth.
        for _ in range(500):
            batch = next(loader)
        assert len(batch["n"]) in (2, 4)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
        holder.stdout.close()


@pytest.mark.parametrize("program", [HOLDER, FORKING_HOLDER])
def test_a_consumer_that_leaves_is_forgotten(daemon, remote, counter, program):
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    holder = start_holder(program, "counter", daemon.socket)
    child = int(holder.stdout.readline().split()[1]) if program is FORKING_HOLDER else None
    assert str(holder.pid) in remote("stats", "counter", "--interval", "0").out
    holder.kill()
    holder.wait(60)
    try:
        # Long before its group's policy would send it on, which stalls nobody for ever either.
        for _ in range(100):
            if str(holder.pid) not in remote("stats", "counter", "--interval", "0").out:
                return
        raise AssertionError("still there")
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
        holder.stdout.close()


def test_one_failing_pipeline_beside_a_healthy_one(daemon, remote, counter, tmp_path):
    assert remote("create", counter("good", more="stage { repeat {} }")).code == 0
    bad = counter("bad")
    data = bytearray((tmp_path / "bad.tfrecord").read_bytes())
    data[-1] ^= 1  # the last record's checksum
    (tmp_path / "bad.tfrecord").write_bytes(data)
    assert remote("create", bad).code == 0

    good = iter(penstock.attach("good", socket=daemon.socket))
    next(good)
    loader = iter(penstock.attach("bad", socket=daemon.socket))
    rows = []
    with pytest.raises(penstock.DataLossError, match="bad.tfrecord") as first:
        for batch in loader:
            rows.extend(batch["n"])
    assert rows == list(range(40))  # what came before the damage, in full batches
    # A late consumer gets what the ring still holds, then the same.
    with pytest.raises(penstock.DataLossError) as second:
        for batch in penstock.attach("bad", socket=daemon.socket):
            pass
    assert str(first.value) == str(second.value)

    for _ in range(100):
        next(good)
    listed = remote("list").out
    assert "failed" in listed and "running" in listed


def test_the_consumers_of_a_deleted_pipeline_get_not_found(daemon, remote, counter):
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    loader = iter(penstock.attach("counter", socket=daemon.socket))
    next(loader)
    assert remote("delete", "counter").code == 0
    with pytest.raises(penstock.NotFoundError, match="pipeline counter was deleted"):
        for _ in range(1000):
            next(loader)


def test_a_killed_private_daemon_fails_the_run(penstock_command, counter, tmp_path):
    process = penstock_command.start("run", counter(more="stage { repeat {} }"), "--steps", "1000000000")
    process.stdout.readline()
    [private_daemon] = children(process.pid)
    os.kill(private_daemon, signal.SIGKILL)
    # Its lines are read to the end, so that it does not wait for the pipe.
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "UNAVAILABLE" in error
    assert list((tmp_path / "tmp").iterdir()) == []
