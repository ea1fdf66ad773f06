"""What is written to servers that others wrote: radosgw, which checks every signature and hash, and moto."""

import os
import signal
import socket
import subprocess
import threading

import boto3
import pytest

import penstock
from real_servers import digest, use_keys

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")

MIB = 1 << 20


def run(*words, **more):
    program = os.path.join(os.environ["PENSTOCK_BIN"], "penstock")
    return subprocess.run([program, *words], capture_output=True, text=True, **more)


@pytest.fixture(params=["radosgw", "moto"])
def store(request, variables):
    """boto3's client, with the environment set for the server."""
    if request.param == "radosgw":
        url, store = request.getfixturevalue("radosgw")
    else:
        url = request.getfixturevalue("moto")
        store = boto3.client("s3", endpoint_url=url, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
    use_keys(variables, url)
    return store


def bytes_of(store, key):
    return store.get_object(Bucket="bucket", Key=key)["Body"].read()


def parts_left(store):
    return store.list_multipart_uploads(Bucket="bucket").get("Uploads", [])


@pytest.mark.parametrize("key", ["out/one.tfrecord", "out/odd +=&%@,()'!ü~ name"])
@pytest.mark.parametrize("mib", [0, 20])
def test_write_gives_the_same_bytes_as_to_a_file(mib, key, store, tmp_path):
    (tmp_path / "data").mkdir()
    for i in range(3):
        (tmp_path / "data" / f"{i}").write_bytes(os.urandom(100 + mib * MIB // 3))
    files = str(tmp_path / "data" / "*")
    near = run("write", str(tmp_path / "near"), "--files", files)
    assert near.returncode == 0, near
    far = run("write", f"s3://bucket/{key}", "--files", files)
    assert far.returncode == 0, far
    assert far.stdout == f"wrote 3 records to s3://bucket/{key}\n"
    assert bytes_of(store, key) == (tmp_path / "near").read_bytes()
    assert parts_left(store) == []


def test_json_lines_become_shards_in_a_bucket(store, tmp_path):
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(f'{{"n": {n}}}\n' for n in range(1000)))
    done = run("write", "s3://bucket/rows/rows.tfrecord", "--jsonl", str(lines), "--shards", "4")
    assert done.returncode == 0, done
    rows = penstock.TFRecordDataset("s3://bucket/rows/rows-*.tfrecord").parse_example({"n": penstock.io.FixedLenFeature([], penstock.int64)})
    assert [int(row["n"]) for row in rows] == list(range(1000))
    again = run("write", "s3://bucket/rows/rows.tfrecord", "--jsonl", str(lines), "--shards", "3")
    assert again.returncode == 1 and "already holds shards in another number" in again.stderr
    many = run("write", "s3://bucket/rows/rows.tfrecord", "--jsonl", str(lines), "--shards", "65")
    assert many.returncode == 1 and "at most 64 shards" in many.stderr


def test_an_index_is_uploaded_only_where_that_is_asked_for(folder, store, variables, tmp_path):
    store.put_object(Bucket="bucket", Key="indexed/a", Body=(folder / "train" / "part-0.tfrecord").read_bytes())
    variables.setenv("PENSTOCK_CACHE_DIR", str(tmp_path))

    def keys():
        return [entry["Key"] for entry in store.list_objects_v2(Bucket="bucket", Prefix="indexed/")["Contents"]]

    for _ in range(2):
        assert run("index", "s3://bucket/indexed/*").returncode == 0
        assert keys() == ["indexed/a"]
    done = run("index", "s3://bucket/indexed/*", "--upload")
    assert done.returncode == 0 and "wrote s3://bucket/indexed/.a.penstock-index" in done.stdout, done
    assert keys() == ["indexed/.a.penstock-index", "indexed/a"]
    again = run("index", "s3://bucket/indexed/*", "--upload")
    assert again.returncode == 0 and "300 records, has s3://" in again.stdout, again
    # Who has no other finds that one, and no glob takes it for data.
    variables.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "other"))
    far = penstock.TFRecordDataset("s3://bucket/indexed/*").global_shuffle(seed=1)
    near = penstock.TFRecordDataset(str(folder / "train" / "part-0.tfrecord")).global_shuffle(seed=1)
    assert digest(far) == digest(near)
    assert not list((tmp_path / "other").glob("**/*.penstock-index"))


class Cutting:
    """Stands in front of a server and ends the connection of an upload behind `bytes_` bytes, `times` times, or holds it up."""

    def __init__(self, port, bytes_, times, holds=False):
        self._to, self._bytes, self.left, self._holds = port, bytes_, times, holds
        self._over = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self._server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.create_connection(("127.0.0.1", self._to))

        def back():
            try:
                while data := server.recv(65536):
                    client.sendall(data)
            except OSError:
                pass
            client.close()

        threading.Thread(target=back, daemon=True).start()
        passed = 0
        try:
            while data := client.recv(65536):
                passed += len(data)
                server.sendall(data)
                if passed > self._bytes and self.left > 0:
                    self.left -= 1
                    if self._holds:
                        self._over.wait()
                    break
        except OSError:
            pass
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def end(self):
        self._over.set()
        self._server.close()


@pytest.mark.parametrize(("times", "ends_well"), [(3, True), (1_000_000, False)])
def test_fault_29_an_upload_whose_connections_are_cut_leaves_no_half_object(times, ends_well, radosgw, variables, tmp_path):
    url, store = radosgw
    cutting = Cutting(int(url.rsplit(":", 1)[1]), 3 * MIB, times)
    use_keys(variables, cutting.url)
    (tmp_path / "data").write_bytes(os.urandom(20 * MIB))
    store.put_object(Bucket="bucket", Key="cut", Body=b"before")
    try:
        done = run("write", "s3://bucket/cut", "--files", str(tmp_path / "data"))
    finally:
        cutting.end()
    assert (done.returncode == 0) == ends_well, done
    if ends_well:
        assert cutting.left == 0 and len(bytes_of(store, "cut")) > 20 * MIB
    else:
        assert "cannot write: " in done.stderr and "SECRET" not in done.stderr
        assert bytes_of(store, "cut") == b"before"
    assert parts_left(store) == []


def test_fault_29_a_signal_in_the_middle_of_an_upload_aborts_it(radosgw, variables, tmp_path):
    url, store = radosgw
    use_keys(variables, url)
    # Its parts never get there whole.
    held = Cutting(int(url.rsplit(":", 1)[1]), 3 * MIB, 1_000_000, holds=True)
    use_keys(variables, held.url)
    (tmp_path / "data").write_bytes(os.urandom(20 * MIB))
    program = os.path.join(os.environ["PENSTOCK_BIN"], "penstock")
    writing = subprocess.Popen([program, "write", "s3://bucket/stopped", "--files", str(tmp_path / "data")], stderr=subprocess.PIPE)
    while not parts_left(store):
        assert writing.poll() is None
    writing.send_signal(signal.SIGINT)
    assert writing.wait() == -signal.SIGINT
    writing.stderr.close()
    held.end()
    assert parts_left(store) == []
    assert "Contents" not in store.list_objects_v2(Bucket="bucket", Prefix="stopped")


def test_a_wrong_key_writes_nothing_and_is_not_told(radosgw, variables, tmp_path):
    use_keys(variables, radosgw[0], "WRONGSECRET")
    (tmp_path / "data").write_bytes(b"x")
    done = run("write", "s3://bucket/refused", "--files", str(tmp_path / "data"))
    assert done.returncode == 1 and "cannot write: the server refuses it" in done.stderr
    assert "WRONGSECRET" not in done.stderr
    none = run("write", "https://host.example/refused", "--files", str(tmp_path / "data"))
    assert none.returncode == 1 and "nothing is written by HTTP" in none.stderr


def test_fetch_fills_the_folder_that_a_daemon_reads(folder, store, variables, tmp_path):
    key = "fetched/part-0.tfrecord"
    store.put_object(Bucket="bucket", Key=key, Body=(folder / "train" / "part-0.tfrecord").read_bytes())
    cache = tmp_path / "cache"
    assert run("fetch", "s3://bucket/fetched/*").returncode == 2
    first = run("fetch", "s3://bucket/fetched/*", "--cache-dir", str(cache))
    assert first.returncode == 0 and ", fetched " in first.stdout and first.stdout.splitlines()[-1].startswith("1 files, "), first
    variables.setenv("PENSTOCK_REMOTE_CACHE", str(cache))
    second = run("fetch", "s3://bucket/fetched/*")
    assert second.returncode == 0 and ", was there\n" in second.stdout, second
    dataset = penstock.TFRecordDataset(f"s3://bucket/{key}")
    assert digest(dataset) == digest(penstock.TFRecordDataset(str(folder / "train" / "part-0.tfrecord")))
