"""Datasets of servers that others wrote: rclone's S3, which checks signatures, and an emulator of Google Cloud Storage, which checks nothing.

`./dev test remote` installs them and runs this; it is none of the default suite.
"""

import hashlib
import http.client
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

import penstock
from penstock._running import _daemon

BIN = pathlib.Path(sys.executable).parent

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "bucket"
    (folder / "train").mkdir(parents=True)
    for i in range(3):
        write_records(folder / "train" / f"part-{i}.tfrecord", i)
    # What a signature gets wrong first.
    shutil.copy(folder / "train" / "part-0.tfrecord", folder / "train" / "odd +=&%@,()'!ü~ name")
    return folder


@pytest.fixture
def variables(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "STORAGE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield monkeypatch
    # The next test's daemon has other variables.
    _daemon.stop_private_daemon()


@pytest.fixture(scope="module")
def rclone(folder):
    rclone = shutil.which("rclone", path=BIN)
    port = free_port()
    server = Process(port, rclone, "serve", "s3", str(folder.parent), "--addr", f"127.0.0.1:{port}", "--auth-key", "AKIDEXAMPLE,SECRETEXAMPLE")
    yield f"http://127.0.0.1:{port}"
    server.end()


@pytest.mark.parametrize("pattern", ["train/part-*.tfrecord", "train/part-{0,2}.tfrecord", "**/part-1.tfrecord", "train/odd +=&%@,()'!ü~ name"])
def test_rclones_s3_gives_what_the_files_give(pattern, folder, rclone, variables):
    variables.setenv("AWS_ENDPOINT_URL_S3", rclone)
    variables.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    variables.setenv("AWS_SECRET_ACCESS_KEY", "SECRETEXAMPLE")
    local = str(folder / pattern.replace("**/", "train/"))
    assert digest(penstock.TFRecordDataset(f"s3://bucket/{pattern}")) == digest(penstock.TFRecordDataset(local))


def test_rclone_refuses_a_wrong_key_and_the_message_has_none(rclone, variables):
    variables.setenv("AWS_ENDPOINT_URL_S3", rclone)
    variables.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    variables.setenv("AWS_SECRET_ACCESS_KEY", "WRONGSECRET")
    with pytest.raises(penstock.PermissionDeniedError, match="refuses") as refused:
        list(penstock.TFRecordDataset("s3://bucket/train/part-0.tfrecord"))
    assert "SECRET" not in str(refused.value)


@pytest.fixture(scope="module")
def emulator(folder):
    port = free_port()
    server = Process(port, shutil.which("gcp-storage-emulator", path=BIN), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=bucket")
    base = f"http://127.0.0.1:{port}"
    for path in sorted((folder / "train").glob("part-*")):
        request = urllib.request.Request(
            f"{base}/upload/storage/v1/b/bucket/o?uploadType=media&name=train/{path.name}", data=path.read_bytes(), method="POST",
            headers={"Content-Type": "application/octet-stream"},
        )
        urllib.request.urlopen(request).read()
    yield base
    server.end()


@pytest.mark.parametrize("pattern", ["train/part-*.tfrecord", "train/part-1.tfrecord"])
def test_the_emulator_of_gcs_gives_what_the_files_give(pattern, folder, emulator, variables):
    variables.setenv("STORAGE_EMULATOR_HOST", emulator)
    variables.setenv("NO_GCE_CHECK", "true")
    assert digest(penstock.TFRecordDataset(f"gs://bucket/{pattern}")) == digest(penstock.TFRecordDataset(str(folder / pattern)))
