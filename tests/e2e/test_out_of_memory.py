"""Fault 35: a control group that has no memory left, with the kernel's own OOM killer."""

import contextlib
import os
import pathlib
import subprocess
import sys

import pytest

from confined import memory_group
from programs import Daemon, Penstock, eventually
from test_return import Supervised

penstock = pytest.importorskip("penstock")

MIB = 1 << 20
LIMIT = 400 * MIB

GOOD = 'name: "good" workers: 1 stage { range { stop: 1000000000 } } stage { batch { batch_size: 2 } }'
# Elements of 1 MiB, 40 of which are kept.
KEEPS = """
name: "keeps" workers: 1 ring {{ slots: 2 }}
stage {{ range {{ stop: {elements} }} }}
stage {{ map {{ out: "n = value" out: "x = float32(arange(262144)) + float32(value)" }} }}
stage {{ cache {{}} }}
stage {{ repeat {{}} }}
stage {{ batch {{ batch_size: 1 }} }}
"""
# Takes all that there is, in steps, and is the last to be chosen.
HOG = """
import pathlib
pathlib.Path("/proc/self/oom_score_adj").write_text("0")
taken = []
while True:
    taken.append(bytearray(b"x") * (4 << 20))
"""


@pytest.fixture
def group():
    with memory_group(LIMIT) as made:
        if made is None:
            pytest.skip("no memory control group can be made here (root, and a memory controller of v1 or v2)")
        yield made


def into(group):
    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))


def kills(group):
    """How often the kernel has ended somebody in the group."""
    for name in ("memory.events.local", "memory.oom_control"):
        with contextlib.suppress(OSError):
            for line in (group / name).read_text().splitlines():
                if line.split()[0] == "oom_kill":
                    return int(line.split()[1])
    pytest.skip("this kernel does not count its ends for want of memory by control groups")


def fill(group):
    """Takes the group's memory until the kernel has ended somebody."""
    before = kills(group)
    hog = subprocess.Popen([sys.executable, "-c", HOG], preexec_fn=into(group), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: kills(group) > before)
    finally:
        hog.kill()
        hog.wait()


def states(command):
    return {line.split()[0]: line.split()[1] for line in command("list").out.splitlines()[1:] if len(line.split()) > 1}


def create(command, folder, text, name):
    (folder / f"{name}.textproto").write_text(text)
    done = command("create", f"{name}.textproto")
    assert done.code == 0, done


def test_the_kernel_ends_three_daemons_and_the_right_pipeline_is_set_aside(tmp_path, group):
    supervised = Supervised(tmp_path, limits=into(group))
    try:
        assert supervised.daemon.is_ready
        command = Penstock(tmp_path, supervised.socket)
        create(command, tmp_path, GOOD, "good")
        loader = penstock.attach("good", supervised.socket, timeout=30, reconnect=120)
        next(loader)
        create(command, tmp_path, KEEPS.format(elements=40), "keeps")
        for death in range(3):
            with penstock.attach("keeps", supervised.socket, timeout=60) as keeper:
                for step in range(45):
                    assert next(keeper)["n"][0] == step % 40
            child = supervised.child
            # The kernel chooses it before all others of the group.
            pathlib.Path(f"/proc/{child}/oom_score_adj").write_text("1000")
            fill(group)
            eventually(lambda: supervised.child not in (None, child) and supervised.listens)
            next(loader)
        eventually(lambda: states(command).get("keeps") == "set_aside")
        assert states(command)["good"] == "running"
        told = command("explain", "keeps").out
        assert "the kernel ended it for want of memory, of which the pipeline had" in told, told
        for _ in range(5):
            next(loader)
        assert command("delete", "keeps").code == 0
    finally:
        supervised.stop()


def test_a_cache_in_memory_keeps_what_a_control_group_has_room_for(tmp_path, group):
    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error", limits=into(group))
    try:
        assert daemon.is_ready
        command = Penstock(tmp_path, daemon.socket)
        # Twice what there is.
        create(command, tmp_path, KEEPS.format(elements=800), "keeps")
        with penstock.attach("keeps", daemon.socket, timeout=60) as loader:
            for step in range(1700):
                batch = next(loader)
                assert batch["n"][0] == step % 800 and batch["x"][0, 0] == step % 800
        assert daemon.process.poll() is None
        assert kills(group) == 0
        # A part of it is kept.
        anonymous = pathlib.Path(f"/proc/{daemon.pid}/status").read_text().split("RssAnon:")[1].split()[0]
        assert 32 * MIB < int(anonymous) * 1024 < LIMIT
        assert command("delete", "keeps").code == 0
    finally:
        daemon.stop()
