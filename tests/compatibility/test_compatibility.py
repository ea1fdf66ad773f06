"""What earlier releases left behind works with this one, or is refused with the reason that refused.json names (README.md)."""

import json
import pathlib
import shutil
import socket
import struct

import pytest

import left_behind
from programs import Daemon, Penstock

penstock = pytest.importorskip("penstock")

_HERE = pathlib.Path(__file__).parent
RELEASES = sorted(path.name for path in _HERE.iterdir() if (path / "refused.json").exists())
CURSORS = [(release, path.stem) for release in RELEASES for path in sorted((_HERE / release).glob("*.cursor"))]
_REPLY_BYTES, _CODE_AT, _SIZE_AT, _MESSAGE_AT = 1024, 16, 32, 64  # of ring/attach.h; every release has them there


@pytest.fixture
def left(tmp_path):
    """`left(release)`: a copy of what it left behind, a folder, and what is known to be refused of it."""

    def copy(release):
        folder = tmp_path / "left"
        shutil.copytree(_HERE / release, folder)
        return folder, json.loads((folder / "refused.json").read_text())

    return copy


def lines(text):
    return text.splitlines()


def changes(history):
    """Without the comment, which has the etag."""
    return [line for line in lines(history) if not line.startswith("#")]


def test_there_is_a_release_with_every_kind_of_cursor():
    assert "0.1.0" in RELEASES
    assert {name for release, name in CURSORS if release == "0.1.0"} == set(left_behind.SPECS)


@pytest.mark.parametrize("release, name", CURSORS)
def test_cursors(left, tmp_path, release, name):
    folder, refused = left(release)
    command = Penstock(folder)
    done = command("run", f"{name}.textproto", "--resume", f"{name}.cursor", "--steps", left_behind.STEPS_BEHIND)
    if f"{name}.cursor" in refused:
        assert done.code != 0 and refused[f"{name}.cursor"] in done.err, done
    else:
        assert done.code == 0, done
        assert lines(done.out) == lines((folder / f"{name}.tail").read_text())


@pytest.mark.parametrize("release", RELEASES)
def test_state_folders(left, release):
    folder, refused = left(release)
    (folder / "state").rename(folder / "penstock.sock.state")
    daemon = Daemon(folder / "penstock.sock", *left_behind.REJOIN)
    try:
        command = Penstock(folder, daemon.socket)
        if "state" in refused:
            done = command("list")
            assert refused["state"] in done.out + done.err, done
            return
        assert changes(command("history", "kept").out) == changes((folder / "state.history").read_text()) != []
        assert left_behind.sums(daemon.socket, 60) == (folder / "state.steps").read_text()
    finally:
        daemon.stop()


@pytest.mark.parametrize("release", RELEASES)
def test_indices(left, release):
    """An index is used or made again: the records are the same either way."""
    folder, _ = left(release)
    index = folder / ".numbers-0.tfrecord.penstock-index"
    assert index.exists()
    command = Penstock(folder)
    with_index = command("run", "everywhere.textproto")
    index.unlink()
    assert with_index.code == 0, with_index
    assert command("run", "everywhere.textproto").out == with_index.out


@pytest.mark.parametrize("release", RELEASES)
def test_clients(left, release):
    """An earlier release's client is served, or told both versions."""
    folder, refused = left(release)
    hello = bytes.fromhex((folder / "hello.hex").read_text())
    daemon = Daemon(folder / "daemon.sock", keeps_state=False)
    try:
        (folder / "kept.textproto").write_text(left_behind.KEPT)
        assert Penstock(folder, daemon.socket)("create", "kept.textproto").code == 0
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(daemon.socket)
            connection.sendall(hello)
            reply = b""
            while len(reply) < _REPLY_BYTES:
                more = connection.recv(_REPLY_BYTES - len(reply))
                assert more, f"the daemon closed the connection after {len(reply)} bytes"
                reply += more
        (code,), (size,) = struct.unpack_from("<i", reply, _CODE_AT), struct.unpack_from("<I", reply, _SIZE_AT)
        message = reply[_MESSAGE_AT : _MESSAGE_AT + size].decode()
        (client_version,) = struct.unpack_from("<I", hello, 8)
        if client_version == penstock.abi_version():
            assert code == 0, message
        else:
            assert code == 9 and refused.get("clients", "no such line in refused.json") in message, message
            assert f"the client {client_version}, the daemon {penstock.abi_version()}" in message
    finally:
        daemon.stop()
