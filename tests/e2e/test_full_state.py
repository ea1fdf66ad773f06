"""A state folder on a disk without room: what cannot be written down is refused, and nothing of it is done."""

import os
import signal

import pytest

from confined import mounts
from programs import Daemon, Penstock, children, eventually

penstock = pytest.importorskip("penstock")


class SmallDisk:
    """A supervised daemon whose state folder is a disk of its own."""

    def __init__(self, folder):
        self.path = folder / "penstock.sock.state"
        self.path.mkdir()
        mount = mounts(("small", self.path, "tmpfs", "size=256k"))
        self.daemon = Daemon(folder / "penstock.sock", "--supervise", "--log-level", "error", limits=mount)
        assert self.daemon.is_ready
        self.seen = f"/proc/{self.daemon.pid}/root{self.path}"

    def fill(self):
        with open(f"{self.seen}/filler", "wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(bytes(4096))

    def empty(self):
        os.unlink(f"{self.seen}/filler")

    def names(self):
        return {name for name in os.listdir(self.seen) if name not in ("filler", "lock")}

    def kill(self):
        """Returns when the next daemon is there."""
        [before] = children(self.daemon.pid)
        os.kill(before, signal.SIGKILL)
        eventually(lambda: children(self.daemon.pid) not in ([], [before]))


@pytest.fixture
def disk(tmp_path):
    one = SmallDisk(tmp_path)
    yield one
    one.daemon.stop()


@pytest.fixture
def remote(tmp_path, disk, counter):
    command = Penstock(tmp_path, disk.daemon.socket)
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    return command


def goes_on(loader):
    """It makes more batches than were ready."""
    for _ in range(20):
        next(loader)


def refused(result, words, cause):
    assert result.code == 1 and words in result.err and cause in result.err and len(result.err.splitlines()) == 1, result


def test_fault_30_a_change_that_a_full_disk_cannot_keep_is_none(disk, remote, counter):
    loader = penstock.attach("counter", disk.daemon.socket, timeout=60)
    before, kept = remote("get", "counter").out, disk.names()
    disk.fill()
    full = "No space left on device"
    refused(remote("pause", "counter"), "RESOURCE_EXHAUSTED: the pipeline is not paused", full)
    refused(remote("drain", "counter"), "RESOURCE_EXHAUSTED: the pipeline is not paused", full)
    refused(remote("update", "counter", "--workers", 2), "RESOURCE_EXHAUSTED: ", full)
    refused(remote("create", counter("other")), "RESOURCE_EXHAUSTED: ", full)
    goes_on(loader)
    assert remote("get", "counter").out == before and "other" not in remote("list").out
    assert disk.names() == kept
    disk.empty()
    assert remote("pause", "counter").code == 0 and remote("create", counter("other")).code == 0
    # Deleting takes no room.
    disk.fill()
    assert remote("delete", "other").code == 0
    assert disk.names() == kept


def test_faults_30_and_49_a_full_disk_holds_up_nobody_and_a_successor_knows_what_was_taken(disk, remote):
    loader = penstock.attach("counter", disk.daemon.socket, timeout=60)
    disk.fill()
    taken = 3 * 4096  # what was reserved at first is not enough
    for _ in range(taken):
        next(loader)
    assert remote("pause", "counter").code == 1
    disk.kill()
    next(loader)
    disk.empty()
    early = remote("update", "counter", "--skip", 1, "--at-step", taken - 1)
    assert early.code == 1 and "the earliest is" in early.err, early
    changed = remote("update", "counter", "--skip", 1)
    assert changed.code == 0 and int(changed.out.split("from step ")[1].split()[0]) >= taken


def test_fault_30_a_pause_ends_though_the_disk_is_full_and_says_what_is_to_come(disk, remote):
    loader = penstock.attach("counter", disk.daemon.socket, timeout=60)
    next(loader)
    assert remote("pause", "counter").code == 0
    disk.fill()
    for _ in range(2):
        result = remote("resume", "counter")
        assert result.code == 0 and "it goes on, but would be paused again" in result.err and "No space left" in result.err, result
    goes_on(loader)
    disk.empty()
    result = remote("resume", "counter")
    assert result.code == 0 and not result.err, result
    disk.kill()
    goes_on(loader)
