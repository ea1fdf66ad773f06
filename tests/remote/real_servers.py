"""Other people's servers as processes, and datasets beside the same files on this machine."""

import hashlib
import http.client
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np

import penstock

BIN = pathlib.Path(sys.executable).parent


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Process:
    """A server's process, until its port answers."""

    def __init__(self, port, *command, **variables):
        self.port = port
        self.process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while True:
            try:
                http.client.HTTPConnection("127.0.0.1", port, timeout=5).connect()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, command
                time.sleep(0.1)

    def end(self):
        self.process.terminate()
        self.process.wait()


def write_records(path, seed):
    random = np.random.default_rng(seed)
    with penstock.io.TFRecordWriter(str(path)) as writer:
        for size in random.integers(0, 60_000, 300):
            writer.write(random.bytes(int(size)))


def digest(dataset):
    found = hashlib.sha256()
    for batch in dataset.batch(7):
        for element in np.asarray(batch):
            found.update(len(element).to_bytes(8, "little") + bytes(element))
    return found.hexdigest()


def use_keys(variables, url, secret="SECRETEXAMPLE"):
    variables.setenv("AWS_ENDPOINT_URL_S3", url)
    variables.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    variables.setenv("AWS_SECRET_ACCESS_KEY", secret)
