"""What a client does wrong hurts that client alone: other releases, scribbled control pages, forks, no threads."""

import mmap
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys

import pytest

from programs import Daemon, Penstock

penstock = pytest.importorskip("penstock")

HELLO = pathlib.Path(__file__).parents[1] / "golden" / "hello_abi_3.hex"
REPLY_BYTES, MESSAGE_AT = 1024, 64


def send(path, request, descriptors=0):
    """The connection, the reply and the descriptors that came with it."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(30)
    connection.connect(path)
    connection.sendall(request)
    reply, fds = b"", []
    while len(reply) < REPLY_BYTES:
        more, received, _, _ = socket.recv_fds(connection, REPLY_BYTES - len(reply), 4)
        fds += received
        if not more:
            break
        reply += more
    return connection, reply, fds


def attach_request(pipeline, group="hostile", mode=0, world_size=1):
    """As ring/attach.h draws it."""
    request = bytearray(2560)
    struct.pack_into("<8sIIIIII", request, 0, b"PNSTKATT", penstock.abi_version(), 2560, 1, 0, len(pipeline), len(group))
    request[64 : 64 + len(pipeline)] = pipeline.encode()
    request[192 : 192 + len(group)] = group.encode()
    struct.pack_into("<8IQQ", request, 256, mode, 0, world_size, 0, 1, 0, 60_000, 0, random.Random(1).getrandbits(64), 2**64 - 1)
    return bytes(request)


def test_fault_42_a_client_of_an_older_release_is_told_both_versions(daemon, remote, counter):
    assert remote("create", counter()).code == 0
    hello = bytes.fromhex(HELLO.read_text())
    connection, reply, fds = send(daemon.socket, hello)
    # Where that release looks for the code and the sentence.
    (code,), (size,) = struct.unpack_from("<i", reply, 16), struct.unpack_from("<I", reply, 32)
    assert code == 9 and fds == []
    message = reply[MESSAGE_AT : MESSAGE_AT + size].decode()
    assert f"the client 3, the daemon {penstock.abi_version()}" in message
    assert connection.recv(1) == b""


@pytest.mark.parametrize("mode", [0, 2])
def test_fault_43_a_scribbled_page_hurts_its_own_consumer_alone(tmp_path, counter, mode):
    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error", "--rejoin-seconds", "0.5")
    assert Penstock(tmp_path, daemon.socket)("create", counter(more="stage { repeat {} }")).code == 0
    honest = [penstock.attach("counter", daemon.socket, timeout=30) for _ in range(2)]
    held = []

    def take(loader):
        batch = next(loader)["n"]
        first = loader.step % 11 * 4
        assert batch.tolist() == list(range(first, min(first + 4, 42)))
        held.append((batch, first))
        if len(held) > 2:
            array, number = held.pop(0)
            assert array[0] == number

    connection, reply, fds = send(daemon.socket, attach_request("counter", mode=mode))
    assert struct.unpack_from("<i", reply, 16) == (0,) and len(fds) == 3
    page = mmap.mmap(fds[1], 4096)
    dice = random.Random(43 + mode)
    for _ in range(400):
        published = honest[0].stats()["published"]
        for _ in range(8):
            word = dice.choice([0, 1, published, published + 1, 2**64 - 1, dice.getrandbits(64), dice.randrange(64)])
            struct.pack_into("<Q", page, 8 * dice.randrange(512), word)
        # Whatever it can have released by now, replayed too.
        struct.pack_into("<Q", page, 256 + 8 * dice.randrange(64), published - dice.randrange(3))
        os.write(fds[2], struct.pack("<Q", 1))
        for loader in honest:
            if loader.stats()["published"] > loader.step + 1:
                take(loader)
    # Its policy lets it be in the way as long as it is there, and no longer.
    connection.close()
    for _ in range(100):
        for loader in honest:
            take(loader)
    assert daemon.stop() == 0


FAILING_THREADS = """
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  return EAGAIN;
}
"""

TRAINER = """
import os, signal, sys
import penstock
loader = penstock.attach("counter", sys.argv[1], timeout=30)
print([int(n) for n in next(loader)["n"]], flush=True)
sys.stdin.readline()
print([int(n) for batch, _ in zip(loader, range(10)) for n in batch["n"]], flush=True)
"""


def test_fault_61_a_client_without_threads_comes_back_in_its_next_call(tmp_path, counter):
    (tmp_path / "threads.c").write_text(FAILING_THREADS)
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-o", tmp_path / "threads.so", tmp_path / "threads.c"], check=True)
    path = tmp_path / "penstock.sock"
    daemon = Daemon(path, "--log-level", "error")
    assert Penstock(tmp_path, daemon.socket)("create", counter(more="stage { repeat {} }")).code == 0
    environment = dict(os.environ, LD_PRELOAD=str(tmp_path / "threads.so"), OPENBLAS_NUM_THREADS="1")
    trainer = subprocess.Popen([sys.executable, "-c", TRAINER, daemon.socket], env=environment, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert trainer.stdout.readline() == "[0, 1, 2, 3]\n"
    assert len(os.listdir(f"/proc/{trainer.pid}/task")) == 1
    daemon.kill()
    second = Daemon(path, "--log-level", "error")
    out, _ = trainer.communicate("\n", timeout=60)
    assert eval(out) == [n for n in range(4, 42)]
    second.stop()
