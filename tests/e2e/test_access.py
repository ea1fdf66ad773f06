"""Who may do what: the daemon's rules for users and groups, with real ones (faults 45, 55, 56)."""

import os
import shutil
import socket
import struct
import subprocess
import sys

import pytest

from programs import Daemon, Penstock, program
from strangers import STRANGER as _STRANGER
from strangers import Stranger

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

_GROUP = 54322


def attach(stranger, pipeline):
    """Takes a batch as a C++ consumer would; returns the error's text."""
    code = ("import penstock, sys\n"
            "try: next(iter(penstock.attach(sys.argv[1], socket=sys.argv[2])))\n"
            "except Exception as error: print(type(error).__name__, error)")
    done = subprocess.run([*stranger.identity, sys.executable, "-c", code, pipeline, stranger.socket],
                          capture_output=True, text=True, timeout=60, env=dict(os.environ, HOME="/"))
    return done.stdout + done.stderr


def test_fault_45_a_stranger_is_refused(serve, place):
    daemon = serve("")
    stranger = Stranger(place, daemon.socket)
    result = stranger("list")
    assert result.code == 1
    assert f"user {_STRANGER} is not in its allowed_uids" in result.err
    for _ in range(30):
        stranger("list")
    daemon.stop()
    log = daemon.process.stderr.read()
    assert f"refused a connection of uid {_STRANGER}" in log
    assert log.count("refused a connection") < 10


def test_a_stranger_is_answered_before_he_asks(serve, place):
    daemon = serve("", pipelines=())
    code = ("import socket, sys\n"
            "peer = socket.socket(socket.AF_UNIX)\n"
            "peer.connect(sys.argv[1])\n"
            "sys.stdout.buffer.write(peer.recv(1024, socket.MSG_WAITALL))\n")
    done = subprocess.run([*Stranger(place, daemon.socket).identity, "/usr/bin/python3", "-c", code, daemon.socket],
                          capture_output=True, timeout=60, env={})
    assert done.stdout[:8] == b"PNSTKREP", done
    assert done.stdout[16] == 7  # permission denied
    assert f"user {_STRANGER} is not in its allowed_uids".encode() in done.stdout


def test_rights_by_user_group_and_pipeline(serve, place, counter):
    daemon = serve(f"""
        access_rule {{ uids: {_STRANGER} pipelines: "eval-*" rights: [RIGHT_READ, RIGHT_ATTACH] }}
        access_rule {{ gids: {_GROUP} pipelines: "mine-*" rights: RIGHT_CONTROL }}
    """)
    stranger = Stranger(place, daemon.socket)
    listed = stranger("list")
    assert "eval-1" in listed.out and "train" not in listed.out
    assert stranger("stats", "eval-1", "--interval", "0").code == 0
    refused = stranger("stats", "train", "--interval", "0")
    assert refused.code == 1
    assert f'user {_STRANGER} may not see the pipeline "train"' in refused.err
    refused = stranger("delete", "eval-1")
    assert 'may not control the pipeline "eval-1"' in refused.err

    member = Stranger(place, daemon.socket, uid=_STRANGER + 5, groups=[_GROUP])
    spec = counter("data")
    assert member("create", spec, "--name", "mine-1").code == 0
    assert member("delete", "mine-1").code == 0
    assert "may not control" in member("create", spec, "--name", "other").err
    assert "may not control" in member("validate", spec, "--name", "other").err
    assert "may not see" in member("stats", "eval-1", "--interval", "0").err


def test_who_may_only_read_takes_no_batch_and_changes_no_log(serve, place):
    daemon = serve(f"access_rule {{ uids: {_STRANGER} rights: RIGHT_READ }}")
    stranger = Stranger(place, daemon.socket)
    assert stranger("stats", "train", "--interval", "0").code == 0
    # What is in a batch is more than statistics.
    refused = stranger("sample", "train")
    assert refused.code == 1 and 'may not attach to the pipeline "train"' in refused.err
    refused = stranger("log-level", "error")
    assert refused.code == 1 and "may not control" in refused.err


def test_events_are_told_of_the_pipelines_that_somebody_may_see(serve, place):
    daemon = serve(f'access_rule {{ uids: {_STRANGER} pipelines: "eval-*" rights: RIGHT_READ }}')
    assert "train" in Penstock(place, daemon.socket)("events").out
    told = Stranger(place, daemon.socket)("events")
    assert told.code == 0, told
    assert "eval-1" in told.out and "train" not in told.out


def test_who_deletes_is_told_no_name_that_he_may_not_see(serve, place):
    daemon = serve(f'access_rule {{ uids: {_STRANGER} pipelines: "eval-*" rights: [RIGHT_READ, RIGHT_CONTROL] }}')
    stranger = Stranger(place, daemon.socket)
    by_command = stranger("delete", "eval-2").err
    code = "import sys; from penstock import _control; _control.delete(*sys.argv[1:])"
    by_python = subprocess.run([*stranger.identity, sys.executable, "-c", code, daemon.socket, "eval-2"],
                               capture_output=True, text=True, timeout=60, env=dict(os.environ, HOME="/")).stderr
    for told in (by_command, by_python):
        assert 'no pipeline "eval-2"' in told and "eval-1" in told and "train" not in told


def test_attaching_takes_a_right(serve, place):
    pytest.importorskip("penstock")
    daemon = serve(f'access_rule {{ uids: {_STRANGER} pipelines: "eval-*" rights: RIGHT_ATTACH }}')
    stranger = Stranger(place, daemon.socket)
    code = ("import penstock, sys\n"
            "sys.path.append('.')\n")
    if subprocess.run([*stranger.identity, sys.executable, "-c", "import penstock"], capture_output=True,
                      env=dict(os.environ, HOME="/")).returncode != 0:
        pytest.skip("the package is in a folder of root's alone")
    assert attach(stranger, "eval-1") == ""
    assert "may not attach to the pipeline" in attach(stranger, "train")


def test_fault_55_data_roots(serve, place, counter):
    (place / "data").mkdir()
    config = place / "roots.textproto"
    config.write_text(f'data_roots: "{place}/data"')
    daemon = Daemon(place / "run" / "rooted.sock", "--config", str(config))
    try:
        penstock = Penstock(place, daemon.socket)
        spec = counter("inside")
        refused = penstock("validate", spec)
        assert refused.code == 1
        assert "PERMISSION_DENIED" in refused.err and "data_roots" in refused.err
        shutil.copy(place / "inside.tfrecord", place / "data")
        assert penstock("validate", spec, "--files", "data/*.tfrecord").code == 0
        (place / "data" / "link.tfrecord").symlink_to("../inside.tfrecord")
        refused = penstock("validate", spec, "--files", "data/link.tfrecord")
        assert "symbolic link" in refused.err
        refused = penstock("validate", spec, "--files", "data/../inside.tfrecord")
        assert refused.code == 1
    finally:
        daemon.stop()


@pytest.mark.parametrize("command", ["validate", "run"])
def test_fault_56_a_shard_that_may_not_be_read_is_named(place, counter, command):
    """By a private daemon of another user, who may read one of two shards."""
    spec = counter()
    shutil.copy(place / "counter.tfrecord", place / "secret.tfrecord")
    (place / "secret.tfrecord").chmod(0o600)
    stranger = Stranger(place, None)
    (place / "tmp").chmod(0o777)
    assert stranger(command, spec, HOME="/").code == 0
    refused = stranger(command, spec, "--files", "*.tfrecord", HOME="/")
    assert refused.code == 1
    assert "PERMISSION_DENIED" in refused.err and f"{place}/secret.tfrecord" in refused.err
    assert refused.out == ""


def test_fault_57_too_many_requests_are_refused(serve, place):
    daemon = serve(f"""
        access_rule {{ uids: {_STRANGER} rights: RIGHT_READ }}
        connection_limits {{ max_requests_per_s: 3 }}
    """, pipelines=())
    stranger = Stranger(place, daemon.socket)
    assert stranger("list").code == 0
    running = [stranger.start("list") for _ in range(30)]
    errors = [process.communicate(timeout=60)[1] for process in running]
    assert any("asks too often" in error for error in errors)
    # Another user has a budget of his own.
    assert Penstock(place, daemon.socket)("list").code == 0


# Connects as often as it is told and says something at each; prints how many were answered or hung up on, and holds the others until its input
# ends.
_HOLD = """
import select, socket, sys
path, number, says, enough = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3]), int(sys.argv[4])
poll = select.poll()
held = {}
for _ in range(number):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(path)
    peer.sendall(says)
    held[peer.fileno()] = peer
    poll.register(peer, select.POLLIN)
heard = 0
while heard < enough:
    for fd, _ in poll.poll():
        poll.unregister(fd)
        heard += 1
print("holds", flush=True)
sys.stdin.read()
"""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)


@pytest.fixture
def hold():
    """Another user's process that holds connections."""
    processes = []

    def start(stranger, number, says, enough):
        process = subprocess.Popen([*stranger.identity, "/usr/bin/python3", "-c", _HOLD, stranger.socket, str(number), says.hex(), str(enough)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={})
        processes.append(process)
        assert process.stdout.readline() == "holds\n"

    yield start
    for process in processes:
        process.communicate(timeout=60)


def test_fault_57_who_holds_all_control_connections_gives_one_up(serve, place, hold):
    daemon = serve(f"allowed_uids: {_STRANGER} connection_limits {{ max_control_connections: 8 }}", pipelines=())
    stranger = Stranger(place, daemon.socket)
    # Each is there when the daemon's settings have come.
    hold(stranger, 8, _PREFACE, 8)
    for _ in range(3):
        assert Penstock(place, daemon.socket)("list").code == 0
    hold(stranger, 1, _PREFACE, 1)
    # All are his again: of his own he is given none up for a further one.
    assert stranger("list").code == 1
    assert Penstock(place, daemon.socket)("list").code == 0


def test_fault_57_who_says_nothing_turns_out_nobody_else_who_does_not(serve, place, hold):
    daemon = serve(f"allowed_uids: {_STRANGER} connection_limits {{ first_bytes_timeout_ms: 60000 }}", pipelines=())
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(daemon.socket)
        # 128 may say nothing at a time; the oldest others are hung up on.
        hold(Stranger(place, daemon.socket), 200, b"", 73)
        slow.sendall(b"PNSTKATT" + struct.pack("<II", 77, 0))
        assert slow.recv(8) == b"PNSTKREP"


def test_fault_57_one_user_does_not_take_all_places_of_consumers(serve, place):
    daemon = serve(f"allowed_uids: {_STRANGER} connection_limits {{ max_consumers: 16 }}", pipelines=["train"])
    code = ("import penstock, sys\n"
            "held = []\n"
            "try:\n"
            "    while True: held.append(penstock.attach('train', socket=sys.argv[1]))\n"
            "except penstock.ResourceExhaustedError as error: print(len(held), error, flush=True)\n"
            "sys.stdin.read()\n")
    with subprocess.Popen([*Stranger(place, daemon.socket).identity, sys.executable, "-c", code, daemon.socket], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, HOME="/")) as process:
        line = process.stdout.readline()
        assert line.startswith("14 ") and "the last eighth" in line, line
        import penstock

        with penstock.attach("train", socket=daemon.socket, timeout=60) as loader:
            next(loader)
        process.communicate(timeout=60)


def _call(stream, path):
    """The head of a call of gRPC, whose message never comes: an HTTP/2 frame."""
    def text(value):
        return bytes([len(value)]) + value.encode()

    fields = (b"\x83\x86\x04" + text(path) + b"\x01" + text("localhost") + b"\x0f\x10" + text("application/grpc") +
              b"\x00" + text("te") + text("trailers"))  # fmt: skip
    return len(fields).to_bytes(3, "big") + b"\x01\x04" + stream.to_bytes(4, "big") + fields


def test_fault_57_one_user_does_not_take_all_threads_of_calls(serve, place, hold):
    daemon = serve(f"allowed_uids: {_STRANGER}", pipelines=())
    # Each of these calls waits for its caller, in a thread: 16 a connection.
    reflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    hold(Stranger(place, daemon.socket), 10, _PREFACE + b"".join(_call(2 * i + 1, reflection) for i in range(16)), 10)
    for _ in range(20):
        result = Penstock(place, daemon.socket)("list")
        assert result.code == 0, result


def test_fault_57_one_user_does_not_take_all_places_of_a_pipeline(serve, place):
    import penstock

    daemon = serve(f"allowed_uids: {_STRANGER}", pipelines=["train"])
    code = ("import penstock, sys\n"
            "held = []\n"
            "try:\n"
            "    while True: held.append(penstock.attach('train', socket=sys.argv[1]))\n"
            "except penstock.ResourceExhaustedError as error: print(len(held), error, flush=True)\n"
            "sys.stdin.read()\n")
    with subprocess.Popen([*Stranger(place, daemon.socket).identity, sys.executable, "-c", code, daemon.socket], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, HOME="/")) as process:
        line = process.stdout.readline()
        assert line.startswith("56 ") and f"user {_STRANGER} has 56" in line, line
        with penstock.attach("train", socket=daemon.socket, timeout=60) as loader:
            next(loader)
        process.communicate(timeout=60)
