"""What a process starts for a daemon of another user, which need not be honest: only its own functions, with memory that keeps its size."""

import fcntl
import json
import os
import socket

import numpy as np
import pytest

import penstock
from penstock._dataset._python import FunctionFile
from penstock._running import _offering

_TIMEOUT_S = 60
_CONFIGURATION = {
    "inputs": [{"name": "value", "dtype": "int64", "shape": []}], "input_structure": "null", "outputs": [{"name": "value", "dtype": "int64", "shape": []}],
    "output_structure": "null", "key": 1, "seeds": False, "name": "square", "describes": False, "threads": 1, "sets_threads": False, "yields": False,
    "lists": False, "casts": False, "tensors": False,
}


def square(x):
    return x * x


def memory(size=1 << 20, seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW):
    file = os.memfd_create("desk", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(file, size)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file


class Daemon:
    """The other end of an offer, which asks for what it likes."""

    def __init__(self, functions=(), has_all=False):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.offer = ours
        self.offer.settimeout(_TIMEOUT_S)
        self.keeper = _offering._Keeper("/nowhere", theirs)
        self.keeper.add(functions, keep=False)
        self.keeper.has_all = has_all
        self.keeper.start()

    def ask(self, function=None, files=None, **changes):
        """The keeper's socket, and the worker's."""
        control, keepers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        rows, workers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (control, rows):
            end.settimeout(_TIMEOUT_S)
        inputs, outputs, stack = memory(), memory(), os.memfd_create("stack", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        configuration = json.dumps(_CONFIGURATION).encode()
        os.pwrite(inputs, configuration, 0)
        given = {"inputs": inputs, "outputs": outputs, "socket": workers.fileno(), "stack": stack, **(files or {})}
        asked = {"path": function and function.spec_value(), "code": function and function.code, "configuration_bytes": len(configuration), **changes}
        socket.send_fds(self.offer, [json.dumps(asked).encode()], [*given.values(), keepers.fileno()])
        for end in (keepers, workers):
            end.close()
        for file in (inputs, outputs, stack):
            os.close(file)
        return control, rows


@pytest.fixture
def daemon():
    daemons = []

    def make(*arguments, **options):
        daemons.append(Daemon(*arguments, **options))
        return daemons[-1]

    yield make
    for one in daemons:
        one.offer.close()


def test_a_function_that_was_offered_is_started_and_ended(daemon):
    function = FunctionFile(square)
    control, rows = daemon([function]).ask(function)
    assert rows.recv(1 << 16)[0] == 16  # ready
    control.send(b"stack")
    control.send(b"kill")
    assert control.recv(1 << 10) == b"ended SIGKILL"
    assert rows.recv(1 << 16) == b""


@pytest.mark.parametrize("how", ["closes its socket", "goes"])
def test_a_worker_ends_with_whoever_asked_for_it(daemon, how):
    function = FunctionFile(square)
    one = daemon([function])
    control, rows = one.ask(function)
    assert rows.recv(1 << 16)[0] == 16
    if how == "goes":
        one.offer.close()
    else:
        control.close()
    assert rows.recv(1 << 16) == b""


def test_only_what_was_offered_is_started(daemon):
    offered, other = FunctionFile(square), FunctionFile(np.square)
    one = daemon([offered])
    control, _ = one.ask(other)
    assert b"refused process" in control.recv(1 << 10)
    control, _ = one.ask(offered, code="0123")
    assert b"has no function" in control.recv(1 << 10)
    # It goes on.
    _, rows = one.ask(offered)
    assert rows.recv(1 << 16)[0] == 16


def test_a_function_of_the_same_bytes_stands_for_one_whose_process_has_ended(daemon):
    function = FunctionFile(square)
    control, rows = daemon(has_all=True).ask(function, path="/proc/1/fd/99")
    assert rows.recv(1 << 16)[0] == 16
    control.close()


def test_a_function_with_arrays_beside_its_pickle_is_not_told_by_its_hash(daemon):
    pytest.importorskip("cloudpickle")
    table = np.zeros(1 << 16)
    function = FunctionFile(lambda x: table[x])
    assert not function.is_whole
    control, _ = daemon([function]).ask(function, path="/proc/1/fd/99")
    assert b"has no function" in control.recv(1 << 10)


@pytest.mark.parametrize(("which", "make", "says"), [
    ("inputs", lambda: memory(seals=fcntl.F_SEAL_GROW), b"may change its size"),
    ("outputs", lambda: memory(seals=fcntl.F_SEAL_SHRINK), b"may change its size"),
    ("outputs", lambda: os.open("/dev/null", os.O_RDWR), b"refused"),
    ("stack", lambda: os.open("/dev/null", os.O_RDWR), b"refused"),
    ("socket", lambda: os.open("/dev/null", os.O_RDWR), b"is none"),
    ("socket", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).detach(), b"none of packets"),
])  # fmt: skip
def test_what_a_worker_is_not_to_have_is_refused(daemon, which, make, says):
    function = FunctionFile(square)
    file = make()
    try:
        control, _ = daemon([function]).ask(function, {which: file})
        told = control.recv(1 << 10)
    finally:
        os.close(file)
    assert told.startswith(b"refused") and says in told


@pytest.mark.parametrize("request_bytes", [b"", b"[]", b"{", b"null", b'{"path": 1}', b"\xff" * 60000])
def test_requests_that_are_none_are_refused(daemon, request_bytes):
    function = FunctionFile(square)
    one = daemon([function])
    control, keepers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.settimeout(_TIMEOUT_S)
    files = [memory(), memory(), keepers.fileno(), memory(), keepers.fileno()]
    socket.send_fds(one.offer, [request_bytes or b" "], files)
    keepers.close()
    for file in (files[0], files[1], files[3]):
        os.close(file)
    assert control.recv(1 << 10).startswith(b"refused")
    # Too few descriptors are nobody's request.
    socket.send_fds(one.offer, [b"{}"], [control.fileno()])
    _, rows = one.ask(function)
    assert rows.recv(1 << 16)[0] == 16


def test_a_request_that_nobody_is_answered_for_ends_no_others(daemon):
    function = FunctionFile(square)
    one = daemon([function])
    files = [memory(), memory(), os.open("/dev/null", os.O_RDWR), memory(), os.open("/dev/null", os.O_RDWR)]
    socket.send_fds(one.offer, [b"{}"], files)
    for file in files:
        os.close(file)
    _, rows = one.ask(function)
    assert rows.recv(1 << 16)[0] == 16


def test_a_daemon_of_this_user_needs_no_offer(tmp_path):
    with penstock.Dataset.range(3).as_numpy_iterator() as elements:
        next(elements)
        assert penstock.offer_workers(elements.socket) is False


def test_without_a_daemon_nothing_is_offered(tmp_path):
    assert penstock.offer_workers(tmp_path / "none.sock") is False
