"""Daemons that make steps for another one: the same bytes, exactly once, whoever is stopped, cut off or wrong: fault 48 of docs/reliability.md. All of them run on
this machine."""

import hashlib
import json
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import yaml

import penstock
from certificates import Authority
from confined import mounts
from lines import Line
from programs import Daemon, Penstock, eventually, free_port, program

TREE = pathlib.Path(__file__).parents[2]

# Some 10 ms a step on one core, so that there is something to lend, and some 80 KB.
SPEC = """
name: "lent"
stage { range { stop: 4000 } }
stage { shuffle { buffer_size: 100 seed: 7 } }
stage { map { out: "n = value" out: "x = sum(random_uniform([30000], seed=1)) + float32(value)" out: "y = random_uniform([1000], seed=2)" } }
stage { batch { batch_size: 20 } }
ring { slots: 8 }
"""


class Host:
    """A daemon with a configuration of its own."""

    def __init__(self, folder, name, config, *options, before=None):
        self.folder = folder / name
        self.folder.mkdir()
        self.config = self.folder / "penstockd.textproto"
        self.config.write_text(config)
        self.options = options
        self.before = before
        self.start()

    def start(self):
        self.daemon = Daemon(self.folder / "penstock.sock", "--config", str(self.config), *self.options, limits=self.before, keeps_state=False)
        if not self.daemon.is_ready:
            self.daemon.process.kill()
            pytest.fail(self.daemon.process.stderr.read())
        self.remote = Penstock(self.folder, self.daemon.socket)

    def stats(self, name="lent"):
        return json.loads(self.remote("stats", name, "--json").out)


@pytest.fixture
def host(tmp_path):
    hosts = []

    def make(name, config="", *options, **more):
        hosts.append(Host(tmp_path, name, "worker_defaults { workers: 1 worker_nice: 0 }\n" + config, *options, **more))
        return hosts[-1]

    yield make
    for one in hosts:
        if one.daemon.process.poll() is None:
            one.daemon.process.send_signal(signal.SIGCONT)
        one.daemon.stop()


def helper(host, name, port, **more):
    return host(name, "", "--serve", f"127.0.0.1:{port}", **more)


def asker(host, *ports, more=""):
    addresses = " ".join(f'address: "127.0.0.1:{port}"' for port in ports)
    return host("asker", f"helpers {{ {addresses} {more} }}\n")


def plain_bytes(array):
    """Strings one behind the other; of numbers, their bytes."""
    array = np.asarray(array)
    return b"\0".join(array.ravel().tolist()) if array.dtype == object else array.tobytes()


def digests(batches, each=lambda step: None):
    """Of all batches; `each` is called behind every one. And the longest time between two."""
    found, longest, last = [], 0.0, time.monotonic()
    for step, batch in enumerate(batches):
        longest = max(longest, time.monotonic() - last)
        found.append(hashlib.sha256(b"".join(plain_bytes(batch[name]) for name in sorted(batch))).hexdigest())
        each(step)
        last = time.monotonic()
    return found, longest


def is_ready(one, *ports):
    states = {each["address"]: each.get("state") for each in one.stats().get("helpers", [])}
    return all(states.get(f"127.0.0.1:{port}") == "ready" for port in ports)


def create(one, spec=SPEC, *ports):
    path = one.folder / "lent.textproto"
    path.write_text(spec)
    made = one.remote("create", path)
    assert made.code == 0, made
    eventually(lambda: is_ready(one, *ports))
    return penstock.attach("lent", one.daemon.socket)


_ALONE = []


@pytest.fixture
def alone(host):
    """What a daemon without helpers makes."""
    if not _ALONE:
        _ALONE.extend(digests(create(host("alone")))[0])
        assert len(_ALONE) == 200
    return _ALONE


@pytest.fixture
def line():
    lines = []

    def make(port):
        lines.append(Line(port))
        return lines[-1]

    yield make
    for one in lines:
        one.close()


def runs_until(is_seen, one, ports, alone, each=lambda step: None, again=lambda: None, spec=SPEC):
    """The figures of all helpers behind the run in which something of them was seen, and the longest time between two batches. Where three
    daemons share two processors, a helper may be resting for a whole run, and is not asked for anything: then there is another run."""
    for attempt in range(8):
        if attempt > 0:
            assert one.remote("delete", "lent").code == 0
        again()
        made, longest = digests(create(one, spec, *ports), each)
        assert made == alone
        helpers = one.stats()["helpers"]
        if is_seen(helpers):
            break
    return helpers, longest


def is_left_out(helpers):
    return int(helpers[0].get("left_out", 0)) > 0


def steps_of(helper):
    return int(helper.get("steps", 0))


def test_two_helpers_make_steps_of_the_same_bytes(host, alone):
    ports = [free_port(), free_port()]
    for number, port in enumerate(ports):
        helper(host, f"helper{number}", port)
    one = asker(host, *ports)
    seen = {}

    def look(step):
        if step == 150:
            seen["top"] = one.remote("stats", "lent").out
            seen["explain"] = one.remote("explain", "lent").out

    helpers, _ = runs_until(lambda helpers: min(map(steps_of, helpers)) > 5, one, ports, alone, look)
    assert len(helpers) == 2
    for each in helpers:
        assert steps_of(each) > 5, helpers
        # Three daemons share this machine's processors: one may be resting.
        assert f"helper {each['address']}: re" in seen["top"], seen["top"]
    assert " of 2 helpers make" in seen["explain"], seen["explain"]


def test_a_helper_that_is_stopped_holds_up_for_a_second_at_most(host, alone):
    port = free_port()
    stopped = helper(host, "helper", port)
    one = asker(host, port)

    def is_silent():
        return "no sign of life" in one.stats()["helpers"][0]["reason"]

    def stop(step):
        if step == 60:
            stopped.daemon.process.send_signal(signal.SIGSTOP)
        if step == 140:
            # The steps between may have taken less time than it may be silent.
            eventually(is_silent)
            stopped.daemon.process.send_signal(signal.SIGCONT)

    made, longest = digests(create(one, SPEC, port), stop)
    assert made == alone
    assert is_left_out(one.stats()["helpers"])
    # A gap is a promise, and this machine may be loaded: only its order of magnitude is tested here (helper_kills.py measures it).
    assert longest < 5


@pytest.mark.parametrize("does, told", [
    ("damages", ["changed on"]), ("cuts", ["closed", "reset", "Broken pipe"]), ("drips", ["no answer for", "too slowly"]), ("hangs", ["no sign of life", "no answer for"]),
])
def test_whatever_a_line_does_to_steps_their_bytes_are_the_same(host, alone, line, does, told):
    port = free_port()
    helper(host, "helper", port)
    between = line(port)
    one = asker(host, between.port)
    passes = between.does

    def meddle(step):
        if step == 60:
            between.does = does

    def pass_again():
        between.does = passes

    (helped,), longest = runs_until(is_left_out, one, [between.port], alone, meddle, pass_again)
    assert int(helped.get("left_out", 0)) > 0, helped
    assert any(words in helped["reason"] for words in told), helped
    assert longest < 5  # as above


def test_a_helper_that_is_upgraded_in_mid_run_is_left_out(host, alone, line):
    port = free_port()
    helper(host, "helper", port)
    between = line(port)
    one = asker(host, between.port)
    explained = []
    passes = between.does

    def pass_again():
        between.does = passes
        explained.clear()

    def upgrade(step):
        if step == 60:
            between.does = "upgrades"
            between.cut()
        if step == 180:
            explained.append(one.remote("explain", "lent").out)

    (helped,), _ = runs_until(lambda helpers: steps_of(helpers[0]) > 0 and is_left_out(helpers), one, [between.port], alone, upgrade, pass_again)
    assert steps_of(helped) > 0
    assert "it refuses: the asker is of release" in helped["reason"] and "~, this helper of" in helped["reason"], helped
    assert "is left out: it refuses: the asker is of release" in explained[0], explained


def test_a_helper_with_other_files_at_the_same_path_is_left_out_and_says_what_differs(host, tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    for folder, first in ((own, 0), (other, 1)):
        folder.mkdir()
        (folder / "lines.txt").write_text("".join(f"{number:07}\n" for number in range(first, 2000 + first)))
    spec = f"""
        name: "lent" ring {{ slots: 8 }}
        stage {{ text_line {{ files: "{own}/lines.txt" }} }}
        stage {{ map {{ out: "value = value" out: "x = sum(random_uniform([30000], seed=1))" }} }}
        stage {{ batch {{ batch_size: 20 }} }}"""
    undisturbed, _ = digests(create(host("alone"), spec))
    assert len(undisturbed) == 100
    good, wrong = free_port(), free_port()
    helper(host, "good", good)
    helper(host, "wrong", wrong, before=mounts((other, own, "bind", "")))
    one = asker(host, good, wrong)
    found, _ = runs_until(lambda helpers: max(map(steps_of, helpers)) > 0, one, [good], undisturbed, spec=spec)
    helpers = {each["address"]: each for each in found}
    assert steps_of(helpers[f"127.0.0.1:{good}"]) > 0
    refused = helpers[f"127.0.0.1:{wrong}"]
    assert refused["state"] == "left out" and "begin or end with other bytes" in refused["reason"], refused
    assert int(refused.get("steps", 0)) == 0


def test_helpers_come_and_go_by_a_file(host, alone, tmp_path):
    ports = [free_port(), free_port()]
    first, second = [f"127.0.0.1:{port}" for port in ports]
    for number, port in enumerate(ports):
        helper(host, f"helper{number}", port)
    listed = tmp_path / "listed"
    one = host("asker", f'helpers {{ address: "{listed}" }}\n')
    # A file that is missing has none.
    assert digests(create(one))[0] == alone
    assert not one.stats().get("helpers")
    assert one.remote("delete", "lent").code == 0

    def name(*lines):
        partial = tmp_path / "partial"
        partial.write_text("\n".join(lines))
        partial.rename(listed)

    def exchange(step):
        if step == 40:
            name("no address", "", "127.0.0.1:99999", f"  {second}", second)
            # The trainer takes nothing meanwhile: a run may be over before the file is read again.
            eventually(lambda: [each["address"] for each in one.stats().get("helpers", [])] == [second])

    def is_seen(found):
        return [each["address"] for each in found] == [second] and steps_of(found[0]) > 0

    found, _ = runs_until(is_seen, one, ports[:1], alone, exchange, lambda: name(first))
    assert is_seen(found), found


def test_nobody_helps_without_the_right_certificate(host, alone, tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    port, other_port = free_port(), free_port()
    good, other = Authority(tmp_path / "good", "good"), Authority(tmp_path / "other", "other")
    certificate, key = good.sign("helper", "IP:127.0.0.1")
    trainer, trainer_key = good.sign("trainer", "DNS:trainer.example")
    stranger, stranger_key = other.sign("stranger")
    served = f'client_authorities: "{good.certificate}" certificate_names: "trainer.example"'
    host("helper", f'serve {{ certificate: "{certificate}" key: "{key}" {served} }}', "--serve", f"127.0.0.1:{port}")
    elsewhere, elsewhere_key = good.sign("elsewhere", "IP:127.0.0.2")
    host("elsewhere", f'serve {{ certificate: "{elsewhere}" key: "{elsewhere_key}" {served} }}', "--serve", f"127.0.0.1:{other_port}")
    addresses = f'address: "127.0.0.1:{port}" address: "127.0.0.1:{other_port}"'
    cases = {
        "trusted": (trainer, trainer_key, good, "ready"),
        "stranger": (stranger, stranger_key, good, "left out"),
        "misled": (trainer, trainer_key, other, "left out"),
        "unnamed": (*good.sign("unnamed"), good, "left out"),
    }
    for name, (shown, shown_key, authorities, state) in cases.items():
        one = host(name, f'helpers {{ {addresses} certificate: "{shown}" key: "{shown_key}" authorities: "{authorities.certificate}" }}')
        path = one.folder / "lent.textproto"
        path.write_text(SPEC)
        assert one.remote("create", path).code == 0
        eventually(lambda: [each["state"] for each in one.stats()["helpers"]] == [state, "left out"])
        made, _ = digests(penstock.attach("lent", one.daemon.socket))
        assert made == alone
        first, second = one.stats()["helpers"]
        # One that is resting is not asked for anything.
        assert name == "trusted" or steps_of(first) == 0, first
        if name == "trusted":
            assert "certificate" in second["reason"], second
        one.daemon.stop()
    # Without TLS nothing is said to who expects it.
    plain = asker(host, port)
    create(plain)
    eventually(lambda: plain.stats()["helpers"][0]["state"] == "left out")


def test_the_file_for_kubernetes_has_a_configuration_that_the_daemon_takes(tmp_path):
    settings, service, deployment = yaml.safe_load_all((TREE / "docker/kubernetes/helpers.yaml").read_text())
    (text,) = settings["data"].values()
    config = tmp_path / "penstockd.textproto"
    config.write_text(text)
    words = [str(program("penstockd")), "--config", str(config), "--serve", "10.0.0.7:9466", "--check-config"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "penstock-trainer" in done.stdout, done
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    (container,) = pod["spec"]["containers"]
    assert container["args"][:2] == ["--serve", f"$(POD_IP):{container['ports'][0]['containerPort']}"]
    # A key that everybody may read is refused.
    (secret,) = [volume["secret"] for volume in pod["spec"]["volumes"] if "secret" in volume]
    assert secret["defaultMode"] & 0o007 == 0


def test_wrong_settings_are_told(tmp_path):
    config = tmp_path / "penstockd.textproto"
    for text, told in {
        'serve { address: "0.0.0.0:9466" }': "serve.address: 0.0.0.0:9466 is not the loopback's",
        'serve { address: "somewhere:9466" }': "serve.address: expected numbers and a port",
        'helpers { address: "nowhere" }': "helpers.address: expected a name or number and a port",
        'helpers { address: "a:1" steps_at_a_time: 99 }': "helpers.steps_at_a_time out of range: 99",
        'helpers { address: "a:1" certificate: "relative" }': "helpers.certificate: expected an absolute path",
        'helpers { address: "relative/file" }': "helpers.address: expected a name or number and a port, as 10.0.0.7:9466, or the absolute path of a file",
        'serve { max_streams: 1000 }': "serve.max_streams out of range: 1000",
    }.items():
        config.write_text(text)
        done = subprocess.run([str(program("penstockd")), "--config", str(config), "--check-config"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 78 and told in done.stderr, done.stderr
