"""Servers of known bytes, each in a process of its own."""

import os
import pathlib
import subprocess

import pytest

import penstock


class Server:
    """A ring_server or kinds_server process; `go` lets a ring_server pass its --hold-at."""

    def __init__(self, folder, program, pipeline, *options):
        self.socket = str(folder / "socket")
        self.pipeline = pipeline
        self.process = subprocess.Popen(
            [pathlib.Path(os.environ["PENSTOCK_BIN"]) / program, self.socket, *map(str, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"ready\n"

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def attach(self, **arguments):
        return penstock.attach(self.pipeline, self.socket, **arguments)


@pytest.fixture
def start_server(tmp_path):
    servers = []

    def start(program, pipeline, *options):
        folder = tmp_path / str(len(servers))
        folder.mkdir()
        servers.append(Server(folder, program, pipeline, *options))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
        server.process.stdin.close()
        server.process.stdout.close()


@pytest.fixture
def start(start_server):
    """Starts a ring_server: tests/support/ring_server.cc says what it publishes."""
    return lambda *options: start_server("ring_server", "counted", *options)


@pytest.fixture
def start_kinds(start_server):
    """Starts a kinds_server: tests/support/all_kinds.h says what it publishes."""
    return lambda *options: start_server("kinds_server", "kinds", *options)
