"""The control plane by TCP: certificates on both sides, rules by their names, limits. The authority and the certificates are made here."""

import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys

import pytest

from programs import Daemon, Penstock, eventually, free_port

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from certificates import Authority  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


CONFIG = """
tcp {{ address: "127.0.0.1:{port}" certificate: "{certificate}" key: "{key}" client_authorities: "{authorities}" max_connections: {most} }}
access_rule {{ certificate_names: "operator" certificate_names: "operator.example" rights: [RIGHT_READ, RIGHT_CONTROL] }}
access_rule {{ certificate_names: "reader" pipelines: "eval-*" rights: RIGHT_READ }}
allowed_uids: 0
allowed_uids: 4294967295
connection_limits {{ first_bytes_timeout_ms: 1000 }}
"""


class Served:
    def __init__(self, folder, most=64, more=""):
        self.folder = folder
        self.port = free_port()
        self.authority = Authority(folder / "authority", "good")
        self.certificate, self.key = self.authority.sign("penstockd", "IP:127.0.0.1,DNS:localhost")
        self.config = folder / "penstockd.textproto"
        self.write(most, more)
        self.daemon = Daemon(folder / "run" / "penstock.sock", "--config", str(self.config))
        if not self.daemon.is_ready:
            self.daemon.process.kill()
            pytest.fail(self.daemon.process.stderr.read())
        # A daemon is ready when its Unix socket is; the other address comes a little later.
        eventually(lambda: self.daemon.process.poll() is not None or self.listens())
        self.remote = Penstock(folder, f"tcp:127.0.0.1:{self.port}")

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def write(self, most=64, more=""):
        self.config.write_text(more + CONFIG.format(port=self.port, certificate=self.certificate, key=self.key, authorities=self.authority.certificate, most=most))

    def ask(self, certificate, key, *words, authorities=None):
        return self.remote(*words, PENSTOCK_TLS_CERTIFICATE=str(certificate), PENSTOCK_TLS_KEY=str(key),
                           PENSTOCK_TLS_AUTHORITIES=str(authorities or self.authority.certificate))

    def context(self, certificate, key):
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(certificate, key)
        return context

    def stop(self):
        code = self.daemon.stop()
        return code, self.daemon.process.stderr.read()


@pytest.fixture
def serve(tmp_path):
    """Makes a Served; its daemon ends with the test, however that ends."""
    made = []

    def make(**options):
        made.append(Served(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.daemon.stop()


@pytest.fixture
def served(serve):
    return serve()


def test_rules_by_certificate_name(served, counter, tmp_path):
    operator = served.authority.sign("operator")
    named = served.authority.sign("somebody", "DNS:operator.example")
    for who in (operator, named):
        name = f"eval-{who[0].stem}"
        assert served.ask(*who, "create", counter(name)).code == 0
        assert name in served.ask(*who, "list").out
    assert served.ask(*operator, "create", counter("secret")).code == 0

    reader = served.authority.sign("reader")
    listed = served.ask(*reader, "list").out
    assert "eval-operator" in listed and "secret" not in listed
    assert served.ask(*reader, "get", "eval-operator").code == 0
    for words in (("get", "secret"), ("pause", "eval-operator"), ("delete", "eval-operator"), ("log-level", "debug"), ("sample", "eval-operator")):
        refused = served.ask(*reader, *words)
        assert refused.code == 1 and "PERMISSION_DENIED" in refused.err and "certificate reader" in refused.err, words

    # A name of the subject hides its common name; a good certificate of nobody in particular has no right.
    for certificate in (served.authority.sign("operator2"), served.authority.sign("operator", "DNS:other.example")):
        refused = served.ask(*certificate, "get", "secret")
        assert refused.code == 1 and "PERMISSION_DENIED" in refused.err
    # Events come by it too, and only those that may be seen.
    events = served.ask(*reader, "events").out
    assert "eval-operator" in events and "secret" not in events


def test_who_has_no_good_certificate_gets_nowhere(served, tmp_path):
    operator = served.authority.sign("operator")
    other = Authority(tmp_path / "other", "good")  # of the same name
    for who, authorities in ((other.sign("operator"), served.authority.certificate),  # the daemon does not take it
                             (operator, other.certificate)):  # it is not the daemon that was meant
        refused = served.ask(*who, "list", authorities=authorities)
        assert refused.code == 1 and "UNAVAILABLE" in refused.err, refused
    # A certificate is needed at all.
    context = ssl.create_default_context(cafile=served.authority.certificate)
    context.set_alpn_protocols(["h2"])
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
            secure.recv(1)
            raise ConnectionResetError  # it was closed without a word
    # And TLS 1.2.
    old = served.context(*operator)
    with pytest.raises((ssl.SSLError, ValueError, ConnectionError)):
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as plain, old.wrap_socket(plain, server_hostname="localhost"):
            pass
    # The variables are named where they are missing.
    refused = served.remote("list")
    assert refused.code == 1 and "PENSTOCK_TLS_AUTHORITIES" in refused.err
    # A file that has no end is no PEM file.
    refused = served.ask(*operator, "list", authorities="/dev/zero")
    assert refused.code == 1 and "PENSTOCK_TLS_AUTHORITIES: a PEM file longer than the limit of 1048576 bytes: /dev/zero" in refused.err
    assert served.ask(*operator, "list").code == 0


def resident_bytes(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{pid}/status").read())[1]) << 10


def test_fault_57_half_open_handshakes_are_ended_and_a_peer_has_its_share(serve, counter):
    served = serve(most=16)
    operator = served.authority.sign("operator")
    assert served.ask(*operator, "create", counter("counter")).code == 0
    # One address has a quarter: three that say nothing, and the one that asks.
    silent = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(3)]
    silent[1].sendall(b"\x16\x03\x01\x02")  # half of a ClientHello
    assert served.ask(*operator, "list").code == 0
    more = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(20)]
    # Those beyond the share are closed at once, those that say nothing when their time is over.
    for one in silent + more:
        try:
            while one.recv(4096):
                pass
        except ConnectionResetError:
            pass
        one.close()
    eventually(lambda: served.ask(*operator, "list").code == 0)
    # Metadata of a megabyte costs the daemon some memory at the most, and nobody else anything.
    before = resident_bytes(served.daemon.pid)
    context = served.context(*operator)
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as secure:
            secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
            headers = b"\x00\x01x" + b"\x7f\xff\xff\x3f" + b"y" * (16384 - 8)
            try:
                secure.sendall(len(headers).to_bytes(3, "big") + b"\x01\x00\x00\x00\x00\x01" + headers)
                for _ in range(64):
                    secure.sendall((16384).to_bytes(3, "big") + b"\x09\x00\x00\x00\x00\x01" + b"y" * 16384)
                # Whether it is answered or the connection is closed is gRPC's affair; it must not wait for that here.
                secure.settimeout(1)
                while secure.recv(4096):
                    pass
            except (TimeoutError, ssl.SSLError, ConnectionError):
                pass
            assert "counter" in served.ask(*operator, "list").out
            assert resident_bytes(served.daemon.pid) < before + (16 << 20)
    assert "counter" in served.ask(*operator, "list").out
    code, log = served.stop()
    assert code == 0 and "tcp.max_connections is 16" in log


def test_handshakes_that_fail_do_not_fill_the_log(serve):
    served = serve(more="log_lines_per_cause: 3\n")
    operator = served.authority.sign("operator")
    eventually(lambda: served.ask(*operator, "list").code == 0)
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n")
            try:
                while plain.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    code, log = served.stop()
    told = [line for line in log.splitlines() if "andshake failed" in line]
    # A window of ten seconds may end meanwhile; in each there are three.
    assert code == 0 and told and len(told) <= 12, log
    assert all(" W gRPC: " in line for line in told), told


@pytest.mark.parametrize("break_it, expected", [
    (lambda served: served.key.chmod(0o644), "everybody may read it"),
    (lambda served: served.certificate.write_text("no certificate"), "not a PEM file"),
    (lambda served: served.key.unlink(), "cannot open"),
    (lambda served: served.config.write_text(served.config.read_text().replace("127.0.0.1:", "localhost:")), "expected numbers and a port"),
])
def test_a_bad_setting_says_what_is_wrong(served, tmp_path, break_it, expected):
    served.daemon.stop()
    break_it(served)
    second = Daemon(tmp_path / "second.sock", "--config", str(served.config))
    try:
        assert second.process.wait(60) in (1, 78)
        assert expected in second.process.stderr.read()
    finally:
        second.process.kill()


def test_nothing_listens_without_the_setting(daemon):
    sockets = [line.split()[9] for line in open("/proc/net/tcp").read().splitlines()[1:] if line.split()[3] == "0A"]
    files = subprocess.run(["ls", "-l", f"/proc/{daemon.pid}/fd"], capture_output=True, text=True).stdout
    assert not set(re.findall(r"socket:\[(\d+)\]", files)) & set(sockets)
