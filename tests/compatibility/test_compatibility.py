"""What earlier releases left behind works with this one, or is refused with the reason that refused.json names (README.md)."""

import json
import pathlib
import re
import shutil
import socket
import struct
import subprocess

import pytest

import left_behind
import protocol
from programs import Daemon, Penstock, program

penstock = pytest.importorskip("penstock")

_HERE = pathlib.Path(__file__).parent
RELEASES = sorted(path.name for path in _HERE.iterdir() if (path / "refused.json").exists())
# One of before the first release, by an earlier commit: it has fewer kinds of things.
FIRST = "0.1.0"
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
    assert FIRST in RELEASES
    assert {name for release, name in CURSORS if release == FIRST} == set(left_behind.SPECS)


def test_every_kind_of_folder_and_index_is_there():
    for name in [*left_behind.KEEPING, "saved"]:
        assert list((_HERE / FIRST / name).iterdir()), name
    indices = {path.name for path in (_HERE / FIRST).glob(".*.penstock-index")}
    assert any(".tokens-" in name for name in indices)
    assert {"numbers-0.tfrecord", "lines.txt", "documents.jsonl", "samples.tar"} <= {name[1:].removesuffix(".penstock-index") for name in indices}


def test_every_op_is_in_a_spec_or_says_why_not():
    stage = "penstock.v1.Stage."
    ops = {line[len(stage):].split()[0] for line in protocol.lines() if line.startswith(stage)} - {"name", "draw_name"}
    used = set(re.findall(r"stage \{ (\w+) \{", " ".join(left_behind.SPECS.values())))
    assert used.isdisjoint(left_behind.LEFT_OUT)
    assert ops == used | set(left_behind.LEFT_OUT)


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
    specs = [name for name in left_behind.BY_INDEX if (folder / f"{name}.textproto").exists()]
    assert "everywhere" in specs
    command = Penstock(folder)

    def rows():
        done = {name: command("run", f"{name}.textproto", "--steps", 9) for name in specs}
        assert [one for one in done.values() if one.code != 0] == []
        return {name: one.out for name, one in done.items()}

    with_indices = rows()
    indices = list(folder.glob(".*.penstock-index"))
    assert len(indices) >= len(specs)
    for index in indices:
        index.unlink()
    assert rows() == with_indices


@pytest.mark.parametrize("release", [FIRST])
def test_saved_datasets(left, release):
    """A cache may be made again; what `save` wrote is all that there is of it."""
    folder, _ = left(release)
    done = Penstock(folder)("run", "loaded.textproto")
    assert done.code == 0 and len(lines(done.out)) == 3 * 60 // 7 + 1, done


@pytest.mark.parametrize("release", [release for release in RELEASES if (_HERE / release / "protocol.txt").exists()])
def test_no_name_or_number_of_the_protocol_is_gone(left, release):
    """Older clients send them, specs and state folders hold them. What refused.json names under `protocol` may be gone."""
    folder, refused = left(release)
    old = lines((folder / "protocol.txt").read_text())
    assert len(old) > 900
    assert sorted(set(old) - set(protocol.lines())) == sorted(refused.get("protocol", []))


def test_the_first_release_has_a_protocol():
    assert (_HERE / FIRST / "protocol.txt").exists()


def test_what_the_protocol_is_read_from():
    text = """
package p;
service Calls {
  rpc Ask(Question) returns (stream Answer);  // a { and a ;
}
message Outer {
  reserved 9;
  map<string, int64> sizes = 3;
  message Inner {
    optional string name = 1 [default = "}"];
  }
  oneof kind {
    Inner inner = 1;
  }
  repeated Inner others = 2;
}
enum Colour { RED = 0; }
"""
    assert protocol.of_text(text) == [
        "p.Calls.Ask(Question) stream Answer", "p.Outer.sizes = 3 map<string, int64>", "p.Outer.Inner.name = 1 string", "p.Outer.inner = 1 Inner",
        "p.Outer.others = 2 repeated Inner", "p.Colour.RED = 0"]


@pytest.mark.parametrize("release", [FIRST])
def test_configurations(left, release):
    folder, refused = left(release)
    words = [program("penstockd"), "--config", folder / "configuration.textproto", "--check-config"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    if "configuration" in refused:
        assert done.returncode == 78 and refused["configuration"] in done.stderr, done
    else:
        assert done.returncode == 0, done


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
