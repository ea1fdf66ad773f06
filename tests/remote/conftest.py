"""Tests against other people's servers run where these are installed: `./dev test remote`."""

import os
import pathlib
import shutil
import sys

import pytest

_BIN = str(pathlib.Path(sys.executable).parent)
_FOUND = all(shutil.which(name, path=_BIN) for name in ("rclone", "gcp-storage-emulator"))
collect_ignore = [] if _FOUND else ["real_servers_test.py", "deviant_server_test.py", "uploads_test.py"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A bucket as files of this machine."""
    from real_servers import write_records

    folder = tmp_path_factory.mktemp("data") / "bucket"
    (folder / "train").mkdir(parents=True)
    for i in range(3):
        write_records(folder / "train" / f"part-{i}.tfrecord", i)
    # What a signature gets wrong first.
    shutil.copy(folder / "train" / "part-0.tfrecord", folder / "train" / "odd +=&%@,()'!ü~ name")
    return folder


@pytest.fixture
def variables(monkeypatch):
    """An environment without anybody's keys."""
    from penstock._running import _daemon

    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "STORAGE_", "SSL_CERT", "PENSTOCK_REMOTE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield monkeypatch
    # The next test's daemon has other variables.
    _daemon.stop_private_daemon()


def _client(url, key, secret):
    boto3 = pytest.importorskip("boto3")
    return boto3.client("s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, region_name="us-east-1")


@pytest.fixture(scope="session")
def radosgw(folder, tmp_path_factory):
    """Its address, and boto3's client of it. Its bucket has what `folder` has."""
    import small_ceph

    if not small_ceph.is_installed():
        pytest.skip("Debian packages: " + "ceph-mon ceph-osd ceph-common radosgw")
    ceph = small_ceph.SmallCeph(tmp_path_factory.mktemp("ceph"), "AKIDEXAMPLE", "SECRETEXAMPLE")
    store = _client(ceph.url, "AKIDEXAMPLE", "SECRETEXAMPLE")
    store.create_bucket(Bucket="bucket")
    for path in sorted((folder / "train").iterdir()):
        store.put_object(Bucket="bucket", Key=f"train/{path.name}", Body=path.read_bytes())
    store.put_object(Bucket="bucket", Key="train/empty", Body=b"")
    yield ceph.url, store
    ceph.end()


@pytest.fixture(scope="session")
def moto(folder):
    """The address of a moto that has the first part."""
    from real_servers import BIN, Process, free_port

    program = shutil.which("moto_server", path=BIN)
    if program is None:
        pytest.skip("PyPI package: moto[server]")
    port = free_port()
    server = Process(port, program, "-H", "127.0.0.1", "-p", str(port))
    url = f"http://127.0.0.1:{port}"
    store = _client(url, "a", "b")
    store.create_bucket(Bucket="bucket")
    store.put_object(Bucket="bucket", Key="train/part-0.tfrecord", Body=(folder / "train" / "part-0.tfrecord").read_bytes())
    yield url
    server.end()
