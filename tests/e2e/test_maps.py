"""Small records are read out of maps, for whomever the kernel tells what of a file is in memory, and in another way for all others."""

import errno
import os
import pathlib
import tempfile

import pytest

from confined import refuse
from programs import Daemon, Penstock
from tfrecord_files import framed

penstock = pytest.importorskip("penstock")

RECORDS, PASSES = 20_000, 8
SPEC = """
name: "small"
stage {{ tfrecord {{ files: "{}" }} }}
stage {{ batch {{ batch_size: 1000 }} }}
stage {{ repeat {{}} }}
"""


def record(number):
    return b"%08d" % number * 25


@pytest.fixture
def folder():
    # Other users may look into it, unlike into pytest's own.
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o777)
        yield pathlib.Path(path)


def bytes_read(pid):
    """By system calls; what is looked at in a map does not count."""
    fields = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["rchar"])


def as_nobody():
    # A file of root's that others may read: the kernel tells nobody else which of its pages are in memory.
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@pytest.mark.parametrize("who", ["owner", "mincore is refused", "reader", "no maps"])
def test_small_records_are_read_once(folder, who):
    shard = folder / "small.tfrecord"
    shard.write_bytes(b"".join(framed(record(number)) for number in range(RECORDS)))
    limits = None
    if who == "mincore is refused":
        limits = refuse(errno.EPERM, "mincore")
    elif who == "reader":
        if os.geteuid() != 0:
            pytest.skip("needs root")
        limits = as_nobody
    (folder / "daemon.textproto").write_text("mapped_files { max_bytes: 0 }" if who == "no maps" else "")
    try:
        daemon = Daemon(folder / "s", "--config", folder / "daemon.textproto", limits=limits)
    except PermissionError:
        pytest.skip("only this user may look at this folder")
    try:
        assert daemon.is_ready, daemon.process.stderr.read()
        (folder / "small.textproto").write_text(SPEC.format(shard))
        assert Penstock(folder, daemon.socket)("create", "small.textproto").code == 0
        steps = RECORDS // 1000
        loader = penstock.attach("small", daemon.socket, timeout=30)
        for step in range(PASSES * steps):
            batch = next(loader)
            if step == 2 * steps:
                before = bytes_read(daemon.pid)
            values = next(iter(batch.values())) if isinstance(batch, dict) else batch
            assert values[-1] == record(step % steps * 1000 + 999)
        passes = (bytes_read(daemon.pid) - before) / shard.stat().st_size
    finally:
        daemon.stop()
    # The first chunk of each pass may be read to see what it holds.
    assert passes > PASSES - 4 if who == "no maps" else passes < 1
