"""What shows how a daemon gets on: top, the status page, metrics, and the rules and dashboard over them."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from programs import Daemon, Penstock, eventually, free_port

penstock = pytest.importorskip("penstock")

_TREE = pathlib.Path(__file__).parents[2]


PICTURES = """
name: "pictures"
stage { range { stop: 64 } }
stage { map { constant { name: "K" value: 2 } constant { name: "ZERO" dtype: "uint8" shape: 20 shape: 30 shape: 3 %s }
  out: "image = ZERO + uint8(value * K)" } }
stage { batch { batch_size: 8 } }
stage { repeat {} }
""" % ("value: 0 " * 1800)


class Watched:
    """A daemon with a port, an endless pipeline and one that has skipped something, a consumer at the first."""

    def __init__(self, folder, counter):
        self.port = free_port()
        config = folder / "penstockd.textproto"
        config.write_text(f"http {{ port: {self.port} }}")
        self.daemon = Daemon(folder / "run" / "penstock.sock", "--config", str(config))
        self.penstock = Penstock(folder, self.daemon.socket)
        for name in ("endless", "short"):
            more = "stage { repeat {} }" if name == "endless" else ""
            assert self.penstock("create", counter(name, more=more)).code == 0
        pictures = folder / "pictures.textproto"
        pictures.write_text(PICTURES)
        assert self.penstock("create", pictures).code == 0
        assert self.penstock("update", "pictures", "--set", "map.K=3", "--at-step", "1000000").code == 0

    def with_history(self):
        """By name, the pipelines that have been watched for some seconds."""
        status = json.loads(self.get("/status.json")[1])
        return {one["stats"]["name"]: one for one in status["pipelines"] if len(one["history"]["busy"]) > 1}

    def get(self, path, host=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Host": host} if host else {})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.headers, answer.read().decode()


def wait_for(question):
    """The answer, once there is one."""
    answers = []

    def ask():
        answers[:] = [question()]
        return bool(answers[0])

    eventually(ask)
    return answers[0]


@pytest.fixture
def watched(tmp_path, counter):
    watched = Watched(tmp_path, counter)
    yield watched
    watched.daemon.stop()


def names_in(expression):
    return set(re.findall(r"\b((?:penstock|process)_[a-z_]+)", expression))


def test_metrics_and_what_is_asked_of_them(watched):
    _, text = watched.get("/metrics")
    exported = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert 'penstock_pipeline_steps_total{pipeline="endless"}' in text
    asked = set()
    dashboard = json.loads((_TREE / "config/grafana/penstock.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            asked |= names_in(target["expr"])
    for variable in dashboard["templating"]["list"]:
        asked |= names_in(variable["query"])
    assert len(asked) > 10
    alerts = names_in((_TREE / "config/prometheus/alerts.yaml").read_text())
    assert alerts - asked == set(), "what an alert watches has a panel"
    asked |= alerts
    assert asked - exported == set()
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
        for words in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"],
                      ["check", "config", "--syntax-only", "prometheus.yaml"]):
            done = subprocess.run(["promtool", *words], cwd=_TREE / "config/prometheus", capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_who_is_turned_away_is_counted(watched):
    os.chmod(watched.daemon.socket, 0o666)
    for path in (pathlib.Path(watched.daemon.socket).parent, watched.penstock.folder, *list(watched.penstock.folder.parents)[:2]):
        path.chmod(0o755)
    subprocess.run(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", *watched.penstock.command("list")],
                   cwd="/", capture_output=True, timeout=60)
    wait_for(lambda: 'penstock_refusals_total{reason="no rule"} 1\n' in watched.get("/metrics")[1])


def test_the_page_only_tells_and_only_here(watched):
    headers, page = watched.get("/")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert not re.search(r'(src|href)\s*=|url\(|@import', page), "nothing comes from elsewhere"
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            watched.get("/status.json", host=host)
        assert refused.value.code == 403
    for method in ("POST", "PUT", "DELETE"):
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{watched.port}/status.json", data=b"x", method=method))
    # Loopback alone.
    addresses = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()
                 if line.split()[1].endswith(f":{watched.port:04X}") and line.split()[3] == "0A"]
    assert addresses == [f"0100007F:{watched.port:04X}"]


def test_status_json(watched):
    consumer = watched.penstock.start("run", watched.penstock.folder / "endless.textproto", "--steps", "1000000000", "--name", "run")
    try:
        consumer.stdout.readline()

        def seen():
            found = watched.with_history()
            return found if {"run", "endless", "pictures"} <= set(found) else None

        pipelines = wait_for(seen)
        endless = pipelines["endless"]
        assert [stage["name"] for stage in endless["stats"]["stages"]][:2] == ["tfrecord", "parse_example"]
        assert endless["stats"]["bottleneck"] == "consumer"
        assert endless["stats"]["sentence"] == "no consumer is attached, and the ring is full"
        assert [change["from"] for change in pipelines["pictures"]["changes"]] == ["step 1000000"] and "K" in pipelines["pictures"]["changes"][0]["text"]
        assert (pipelines["pictures"]["has_pictures"], endless["has_pictures"]) == (True, False)
        assert endless["batch"][0] == {"name": "n", "type": "int64", "shape": [-1]}
        assert pipelines["run"]["stats"]["consumers"][0]["pid"] == consumer.pid
    finally:
        consumer.terminate()
        consumer.communicate()


def test_the_newest_batch_as_pictures(watched):
    def sheet(name):
        with urllib.request.urlopen(f"http://127.0.0.1:{watched.port}/sheet/{name}.png", timeout=30) as answer:
            return answer.headers["Content-Type"], answer.read()

    wait_for(lambda: "pictures" in watched.with_history())
    kind, data = sheet("pictures")
    assert kind == "image/png" and data[:8] == b"\x89PNG\r\n\x1a\n"
    # Eight of them in a line, with two pixels between.
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (8 * 30 + 7 * 2, 20)
    for name in ("endless", "none", "..%2F..%2Fetc%2Fpasswd"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            sheet(name)
        assert refused.value.code == 404


def test_fault_57_who_says_nothing_or_half_of_something_keeps_nobody_waiting(watched):
    def connect(said):
        connection = socket.create_connection(("127.0.0.1", watched.port), timeout=60)
        connection.sendall(said)
        return connection

    # Each of them has five seconds; a server that gave each one of two threads for so long would be at it for many minutes.
    others = [connect(said) for said in [b"", b"GET /metr", b"GET / HTTP/1.1\r\nHost: localhost\r\n"] * 70]
    try:
        assert "penstock_pipeline_steps_total" in watched.get("/metrics")[1]
        # The oldest have made room.
        assert others[0].recv(1) == b""
        # The newest are still listened to.
        others[-1].sendall(b"\r\n")
        assert others[-1].recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
    finally:
        for one in others:
            one.close()


def answer_to(watched, *pieces):
    """All that it says until it hangs up."""
    with socket.create_connection(("127.0.0.1", watched.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        with connection.makefile("rb") as file:
            return file.read()


def test_requests_of_all_sizes(watched):
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    page = answer_to(watched, request)
    head, body = page.split(b"\r\n\r\n", 1)
    assert b"\r\nConnection: close" in head and b"\r\nContent-Length: %d\r\n" % len(body) in head and body.rstrip().endswith(b"</html>")
    assert answer_to(watched, *[bytes([byte]) for byte in request]) == page
    assert answer_to(watched, request, request) == page, "one answer a connection"
    assert answer_to(watched, b"HEAD" + request[3:]).split(b"\r\n")[0] == b"HTTP/1.1 200 OK"
    assert answer_to(watched, b"nonsense\r\n\r\n").split(b" ")[1] == b"400"
    cookie = b"Cookie: " + b"x" * 8000 + b"\r\n"
    assert answer_to(watched, request[:-2] + cookie * 3 + b"\r\n").split(b" ")[1] == b"200", "those of other servers on this machine"
    assert answer_to(watched, request[:-2] + cookie * 10 + b"\r\n").split(b" ")[1] == b"431"


def test_the_port_is_taken(watched, tmp_path):
    config = tmp_path / "other.textproto"
    config.write_text(f"http {{ port: {watched.port} }}")
    second = Daemon(tmp_path / "second.sock", "--config", str(config))
    assert second.process.wait(60) == 1
    assert f"cannot listen at 127.0.0.1:{watched.port}" in second.process.stderr.read()


def test_fault_57_a_client_gets_a_body_once_whatever_ranges_it_asks_for(watched):
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    page = answer_to(watched, request)
    for ranges in (b"0-9", b"0-" + b",0-" * 2000):
        assert answer_to(watched, request[:-2] + b"Range: bytes=" + ranges + b"\r\n\r\n") == page


def test_who_finds_no_place_is_counted(tmp_path, counter):
    port = free_port()
    config = tmp_path / "penstockd.textproto"
    config.write_text(f"http {{ port: {port} }} connection_limits {{ max_consumers: 1 }}")
    daemon = Daemon(tmp_path / "run" / "penstock.sock", "--config", str(config))
    try:
        assert Penstock(tmp_path, daemon.socket)("create", counter(more="stage { repeat {} }")).code == 0
        with penstock.attach("counter", socket=daemon.socket):
            with pytest.raises(penstock.ResourceExhaustedError, match="max_consumers is 1"):
                penstock.attach("counter", socket=daemon.socket)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert 'penstock_refusals_total{reason="no place"} 1\n' in answer.read().decode()
    finally:
        daemon.stop()


def test_top(watched):
    def analysed():
        result = watched.penstock("top", "endless", "--count", "1", "--json")
        return "analysis" in result.out and json.loads(result.out)

    stats = wait_for(analysed)
    assert stats["name"] == "endless"
    assert stats["analysis"]["bottleneck"] == "consumer"
    result = watched.penstock("top", "--count", "2", "--interval", "0.05")
    assert result.code == 0
    assert result.out.count("endless  running") == 2
    assert result.out.count("short  running") == 2
    assert "parse_example" in result.out and "no consumers" in result.out
    assert not re.search(r"\d\.\d (elements|wait)", result.out), "what is counted has no parts"
    assert "\x1b" not in result.out
    assert "no pipeline" in watched.penstock("top", "none", "--count", "1").err


@pytest.fixture
def at_rest(tmp_path):
    """A daemon whose pipeline had ended before it came to rest."""
    port = free_port()
    config = tmp_path / "penstockd.textproto"
    config.write_text(f"http {{ port: {port} }} memory {{ idle_ms: 1500 }}")
    daemon = Daemon(tmp_path / "penstock.sock", "--config", str(config))
    daemon.url = f"http://127.0.0.1:{port}/"
    remote = Penstock(tmp_path, daemon.socket)
    for name, more in (("endless", "stage { repeat {} }"), ("short", "")):
        (tmp_path / f"{name}.textproto").write_text(f'name: "{name}" stage {{ range {{ stop: 4 }} }} stage {{ batch {{ batch_size: 2 }} }} {more}')
        assert remote("create", f"{name}.textproto").code == 0
    eventually(lambda: all(json.loads(line)["resting"] for line in remote("top", "--json", "--count", "1").out.splitlines()))
    yield daemon, remote
    daemon.stop()


def test_nothing_holds_back_what_rests(at_rest):
    daemon, remote = at_rest
    wait_for(lambda: "it rests" in remote("top", "endless", "--count", "1").out)
    stats = json.loads(remote("top", "endless", "--count", "1", "--json").out)
    assert (stats["analysis"]["bottleneck"], stats["analysis"]["starved"], stats["state"]) == ("", 0, "PIPELINE_STATE_RUNNING")
    for words in (("top", "endless", "--count", "1"), ("explain", "endless")):
        told = remote(*words).out
        assert "rests" in told and "0 workers" not in told, told
    with urllib.request.urlopen(daemon.url + "metrics", timeout=30) as answer:
        assert 'penstock_pipeline_resting{pipeline="endless"} 1\n' in answer.read().decode()
    # That it has ended is told once, and not again when it rests.
    wait_for(lambda: "the stream has ended" in remote("top", "short", "--count", "1").out)
    told = [json.loads(line) for line in remote("events", "short", "--json").out.splitlines()]
    assert [one["text"] for one in told if "ENDED" in one["kind"].upper()] == ["the stream has ended after step 2 (4 rows)"]


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed; ./dev test service installs it")
def test_the_page_says_what_rests(at_rest, tmp_path):
    daemon, _ = at_rest
    dom = subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/chromium",
                          "--virtual-time-budget=4000", "--dump-dom", daemon.url], capture_output=True, text=True, timeout=120).stdout
    assert 'class="pill resting"' in dom and 'class="pill finished"' in dom
    assert "reading-bound" not in dom and 'class="stage' not in dom


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed; ./dev test service installs it")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(watched, tmp_path, scheme):
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/chromium", "--virtual-time-budget=4000"]
    if scheme == "dark":
        options.append("--force-dark-mode")
    wait_for(lambda: {"endless", "pictures"} <= set(watched.with_history()))
    url = f"http://127.0.0.1:{watched.port}/"
    dom = subprocess.run(["chromium", *options, "--enable-logging=stderr", "--dump-dom", url], capture_output=True, text=True, timeout=120)
    assert 'data-loaded="yes"' in dom.stdout
    assert 'data-pipeline="endless"' in dom.stdout
    assert dom.stdout.count("bottleneck") >= 1
    assert "<polygon" in dom.stdout
    assert dom.stdout.count('data-shown="yes"') == 1 and "changed while it ran" in dom.stdout
    assert "Refused to" not in dom.stderr and "Uncaught" not in dom.stderr
    if folder := os.environ.get("PENSTOCK_SCREENSHOTS"):
        subprocess.run(["chromium", *options, "--hide-scrollbars", "--window-size=1200,800", f"--screenshot={folder}/{scheme}.png", url],
                       capture_output=True, timeout=120, check=True)
