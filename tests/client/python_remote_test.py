"""Datasets whose files lie behind an address, beside the same files on this machine."""

import gzip
import hashlib
import http.server
import io
import json
import re
import tarfile
import threading

import numpy as np
import pytest

import penstock

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")


class Files(http.server.ThreadingHTTPServer):
    """Serves a folder with ranges and tags."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder):
        self.folder = folder
        self._known = {}
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def data(self, name):
        """The bytes of a file and their tag."""
        status = (self.folder / name).stat()
        key = (name, status.st_mtime_ns, status.st_ino)
        if key not in self._known:
            data = (self.folder / name).read_bytes()
            self._known[key] = (data, '"' + hashlib.md5(data).hexdigest() + '"')
        return self._known[key]

    def url(self, name):
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        name = self.path.strip("/")
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        path = self.server.folder / name
        if not path.exists():
            return self.answer(404)
        data, tag = self.server.data(name)
        if self.headers.get("If-Match", tag) != tag:
            return self.answer(412)
        if first >= len(data):
            return self.answer(416, Content_Range=f"bytes */{len(data)}")
        last = min(last, len(data) - 1)
        self.answer(206, data[first : last + 1], ETag=tag, Content_Range=f"bytes {first}-{last}/{len(data)}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote")
    random = np.random.default_rng(3)
    for name, sizes in {
        "small": random.integers(0, 300, 3000),
        "long": random.integers(9_000, 200_000, 100),
        "mixed": [10, 2_000_000, 20_000, 3, 1_200_000, 9_000] * 3,
    }.items():
        with penstock.io.TFRecordWriter(str(folder / name)) as writer:
            for size in sizes:
                writer.write(random.bytes(int(size)))
    lines = b"".join(b"line %d of some text\n" % i for i in range(200_000))
    (folder / "lines.txt").write_bytes(lines)
    (folder / "lines.gz").write_bytes(gzip.compress(lines, 1))
    texts = [json.dumps({"text": "x" * int(size)}) for size in random.integers(0, 30_000, 400)]
    (folder / "lines.jsonl").write_text("\n".join(texts) + "\n")
    with tarfile.open(folder / "members.tar", "w") as tar:
        for i, size in enumerate(random.integers(0, 60_000, 100)):
            info = tarfile.TarInfo(f"a/{i:04}.bin")
            info.size = int(size)
            tar.addfile(info, io.BytesIO(random.bytes(info.size)))
    (folder / "fixed").write_bytes(random.bytes(100 * 5000))
    # More than is fetched ahead at a time.
    rows = penstock.Dataset.range(3000).map(lambda x: np.zeros(2048, np.int64) + x)
    rows.save(folder / "saved")
    penstock.Dataset.range(3000).map(penstock.functions.as_string).save(folder / "saved-gzip", compression="GZIP")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    server = Files(folder)
    yield server
    server.shutdown()


TEXT = {"text": penstock.JsonFeature("string")}

CASES = {
    "small records": ("small", penstock.TFRecordDataset),
    "long records": ("long", penstock.TFRecordDataset),
    "records of all sizes": ("mixed", penstock.TFRecordDataset),
    "shuffled": ("long", lambda path: penstock.TFRecordDataset(path).shuffle(50, seed=5)),
    "globally shuffled": ("mixed", lambda path: penstock.TFRecordDataset(path).global_shuffle(seed=5)),
    "a section": ("mixed", lambda path: penstock.TFRecordDataset(path).filter(lambda x: penstock.functions.string_length(x) != 3)),
    "lines": ("lines.txt", penstock.TextLineDataset),
    "lines in gzip": ("lines.gz", lambda path: penstock.TextLineDataset(path, compression_type="GZIP")),
    "fixed": ("fixed", lambda path: penstock.FixedLengthRecordDataset(path, 100)),
    "a list of files": ("mixed", lambda path: penstock.Dataset.list_files(path).interleave(penstock.TFRecordDataset)),
    "files that elements name": ("long", lambda path: penstock.Dataset.from_tensor_slices([path, path]).map(penstock.io.read_file)),
    "files of a list": ("long", lambda path: penstock.Dataset.list_files(path).map(penstock.io.read_file)),
    "json lines": ("lines.jsonl", lambda path: penstock.Dataset.json_lines(path, TEXT).map(lambda x: x["text"])),
    "a tar": ("members.tar", lambda path: penstock.TarDataset(path, ["bin"]).map(lambda x: x["bin"])),
    "globally shuffled json lines": ("lines.jsonl", lambda path: penstock.Dataset.json_lines(path).global_shuffle(seed=5).decode_json(TEXT).map(lambda x: x["text"])),
    "a globally shuffled tar": ("members.tar", lambda path: penstock.TarDataset(path, ["bin"]).global_shuffle(seed=5).map(lambda x: x["bin"])),
    "globally shuffled lines": ("lines.txt", lambda path: penstock.TextLineDataset(path).global_shuffle(seed=5).take(500)),
    "saved elements": ("saved", lambda path: penstock.Dataset.load(path).repeat(2)),
    "saved elements in gzip": ("saved-gzip", penstock.Dataset.load),
    "globally shuffled saved elements": ("saved", lambda path: penstock.Dataset.load(path).global_shuffle(seed=5).repeat(2)),
    "a section of saved elements": ("saved", lambda path: penstock.Dataset.load(path).skip(100).filter(lambda x: x[0] % 3 == 1)),
    "draws by saved elements": ("saved", lambda path: penstock.Dataset.load(path).filter(lambda x: x[0] % 3 == 1).map(lambda x: x + penstock.functions.random_uniform([1], 0, 1000, np.int64, seed=3))),
    "whole files": ("long", lambda path: penstock.FilesDataset(path).map(lambda x: x["bytes"])),
}


def digest(dataset):
    found = hashlib.sha256()
    for batch in dataset.batch(7):
        for element in np.asarray(batch):
            found.update(len(element).to_bytes(8, "little") + bytes(element))
    return found.hexdigest()


@pytest.mark.parametrize("case", CASES)
def test_an_address_gives_what_the_path_gives(case, folder, server):
    name, dataset = CASES[case]
    assert digest(dataset(server.url(name))) == digest(dataset(str(folder / name)))


def test_fault_29_what_is_not_there_is_told_before_anything_starts(server):
    with pytest.raises(penstock.NotFoundError, match="no such object.*none"):
        list(penstock.TFRecordDataset(server.url("none")))


def test_addresses_with_secrets_are_refused_without_them():
    for url in ("https://user:secret@host.example/a", "https://host.example/a?signature=secret"):
        with pytest.raises(penstock.Error) as refused:
            list(penstock.TFRecordDataset(url))
        assert "secret" not in str(refused.value)


def test_metadata_services_are_never_reached():
    with pytest.raises(penstock.Error, match="metadata service"):
        list(penstock.TFRecordDataset("http://169.254.169.254/latest/meta-data"))
