"""Datasets of an nginx that is late, stalls, cuts, refuses and lies (lua_nginx.py)."""

import datetime
import pathlib
import socket
import sys
import threading
import urllib.request

import pytest

import lua_nginx
import penstock
from penstock._running import _daemon
from real_servers import digest, write_records

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from certificates import make_certificate  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not lua_nginx.is_installed(), reason="Debian packages: nginx libnginx-mod-http-lua"),
    pytest.mark.filterwarnings("ignore:this trainer holds"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("served")
    # Its workers are another user's.
    for folder in (root, *list(root.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    for i in range(4):
        write_records(root / f"part-{i}", i)
    (root / "empty").touch()
    return root


@pytest.fixture(scope="module")
def nginx(root, tmp_path_factory):
    server = lua_nginx.LuaNginx(tmp_path_factory.mktemp("nginx"), root)
    yield server
    server.end()


def counts(server):
    text = urllib.request.urlopen(server.url + "/counts").read().decode()
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


def all_parts(place):
    return penstock.TFRecordDataset([f"{place}/part-{i}" for i in range(4)])


@pytest.mark.parametrize("place", ["near", "late", "stalled", "busy", "cut", "untagged", "old"])
def test_fault_29_what_passes_gives_what_the_files_give(place, nginx, root, variables):
    before = counts(nginx)
    assert digest(all_parts(f"{nginx.url}/{place}")) == digest(all_parts(root))
    if place in before:
        assert counts(nginx)[place] > before[place]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("whole", "gives no ranges"),
        ("gzip", "compresses what it sends"),
        ("elsewhere", "sends readers elsewhere"),
        ("forbidden", "the server refuses it"),
    ],
)
def test_fault_29_what_does_not_pass_is_told(place, message, nginx, variables):
    with pytest.raises(penstock.Error, match=message):
        list(penstock.TFRecordDataset(f"{nginx.url}/{place}/part-0").batch(10))


def test_fault_29_an_empty_file_is_empty(nginx, root, variables):
    far, near = ([f"{place}/{name}" for name in ("empty", "part-1")] for place in (f"{nginx.url}/near", root))
    assert digest(penstock.TFRecordDataset(far)) == digest(penstock.TFRecordDataset(near))
    # As of files of this machine, nothing but empty ones is taken for a mistake.
    for files in (far[:1], near[:1]):
        with pytest.raises(penstock.InvalidArgumentError, match="all 1 files are empty"):
            list(penstock.TFRecordDataset(files).batch(10))


def test_the_plan_of_ten_thousand_objects_takes_a_request_for_each_thousand(nginx, variables):
    variables.setenv("AWS_ENDPOINT_URL_S3", nginx.url)
    variables.setenv("PENSTOCK_REMOTE_TRUST_ETAGS", "1")
    before = counts(nginx)
    names = sorted(bytes(name) for batch in penstock.Dataset.list_files("s3://many/part-*").batch(1000) for name in batch)
    assert len(names) == 10_000 and names[-1] == b"s3://many/part-09999"
    assert counts(nginx)["lists"] - before["lists"] == 10
    # The index of the first object is looked for.
    assert counts(nginx)["many"] - before["many"] <= 2


class Holding:
    """Stands in front of a server and stops in the middle of its first long answer: what follows never comes."""

    def __init__(self, port):
        self._to = port
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.held = 0
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
        threading.Thread(target=self._pass, args=(client, server), daemon=True).start()
        passed = 0
        try:
            while data := server.recv(65536):
                client.sendall(data)
                passed += len(data)
                with self._lock:
                    holds = passed > 1_000_000 and self.held == 0
                    self.held += holds
                if holds:
                    self._over.wait()
        except OSError:
            pass
        client.close()

    @staticmethod
    def _pass(client, server):
        try:
            while data := client.recv(65536):
                server.sendall(data)
        except OSError:
            pass
        try:
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def end(self):
        self._over.set()
        self._server.close()


def test_fault_29_an_answer_that_stalls_in_its_middle_is_asked_for_from_there(nginx, root, variables):
    holding = Holding(int(nginx.url.rsplit(":", 1)[1]))
    try:
        assert digest(all_parts(f"{holding.url}/near")) == digest(all_parts(root))
        assert holding.held == 1
    finally:
        holding.end()


def make_expired(folder, name):
    """A certificate of last year."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(named).issuer_name(named).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=365)).not_valid_after(now - datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate, private = folder / "expired.pem", folder / "expired.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return certificate, private


@pytest.mark.parametrize(("named", "trusted", "message"), [
    ("localhost", True, None),
    ("other.example", True, "certificate does not hold"),
    ("localhost", False, "certificate does not hold"),
    ("expired", True, "certificate does not hold"),
])  # fmt: skip
def test_fault_29_a_certificate_holds_for_its_name_and_authority_only(named, trusted, message, root, variables, tmp_path):
    certificate = make_expired(tmp_path, "localhost") if named == "expired" else make_certificate(tmp_path, named)
    folder = tmp_path / "nginx"
    folder.mkdir()
    server = lua_nginx.LuaNginx(folder, root, certificate=certificate, name="localhost")
    try:
        if trusted:
            variables.setenv("SSL_CERT_FILE", str(certificate[0]))
        if message is None:
            assert digest(all_parts(f"{server.url}/near")) == digest(all_parts(root))
        else:
            with pytest.raises(penstock.Error, match=message):
                list(penstock.TFRecordDataset(f"{server.url}/near/part-0").batch(10))
    finally:
        _daemon.stop_private_daemon()
        server.end()
