"""Kills, stops and partitions of helpers at random moments, and of the daemon that they help: the trainer has every step once, with the bytes of a run alone:
fault 48 of docs/reliability.md.

    helper_kills.py [--kills 100] [--helpers 3] [--most-seconds 1] [--seed S] [--keep] [--campaign]

Real processes in network namespaces: `penstockd` beside the trainer, and each helper's at the end of a line of its own (veth), with certificates on both
sides. Of a helper, or of some at once, at each moment

  kill        the daemon is killed
  stop        it is stopped (SIGSTOP)
  partition   the line is down: what either side sends is lost
  half        what the helper sends is lost, what it is sent arrives: its packets go to nobody's Ethernet address

for up to 1.5 seconds, in one case of ten all helpers at once. Or the daemon beside the trainer is killed and started again. The longest gap between two batches is
told; where a helper was disturbed it must not be longer than --most-seconds.

It needs root (its own network namespace), ip and openssl. With --campaign a line about it is added to tests/campaigns.jsonl. PENSTOCK_BIN is the folder of the
programs; the Python package must be on PYTHONPATH.
"""

import argparse
import collections
import ctypes
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import campaigns  # noqa: E402
from certificates import Authority  # noqa: E402
from programs import Daemon, Penstock, eventually  # noqa: E402

import penstock  # noqa: E402

PORT = 9466
OWN_NAMESPACE = "PENSTOCK_HELPER_KILLS_IN_NAMESPACE"
CLONE_NEWNET = 0x40000000
# Some 10 ms a step on one core.
SPEC = """
name: "lent"
stage {{ range {{ stop: 1000000 }} }}
stage {{ shuffle {{ buffer_size: 100 seed: {seed} }} }}
stage {{ map {{ out: "n = value" out: "x = sum(random_uniform([30000], seed=1)) + float32(value)" out: "y = random_uniform([1000], seed=2)" }} }}
stage {{ batch {{ batch_size: 20 }} }}
ring {{ slots: 16 }}
"""
KINDS = ["kill"] * 6 + ["stop"] * 5 + ["partition"] * 4 + ["half"] * 3 + ["daemon"] * 2
# How long after the end of a disturbance a gap is still counted as its own.
AFTER_S = 1.5


def ip(*words, before=None):
    subprocess.run(["ip", *map(str, words)], check=True, preexec_fn=before)


class Host:
    """A network namespace, a line to it, and a helper in it."""

    def __init__(self, folder, number, authority):
        self.folder, self.number = folder, number
        self.ours, self.address = f"penstock{number}", f"10.77.{number}.2"
        # The namespace is there as long as somebody is in it.
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        here = os.readlink("/proc/self/ns/net")
        eventually(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != here)
        self.namespace = os.open(f"/proc/{self.holder.pid}/ns/net", os.O_RDONLY)
        self.libc = ctypes.CDLL(None, use_errno=True)
        ip("link", "add", self.ours, "type", "veth", "peer", "name", "line", "netns", self.holder.pid)
        ip("address", "add", f"10.77.{number}.1/24", "dev", self.ours)
        ip("link", "set", self.ours, "up")
        for words in (["address", "add", f"{self.address}/24", "dev", "line"], ["link", "set", "line", "up"], ["link", "set", "lo", "up"]):
            ip(*words, before=self.enter)
        certificate, key = authority.sign(f"helper{number}", f"IP:{self.address}")
        self.config = folder / f"helper{number}.textproto"
        self.config.write_text(
            "worker_defaults { workers: 1 worker_nice: 0 }\n"
            f'serve {{ certificate: "{certificate}" key: "{key}" client_authorities: "{authority.certificate}" certificate_names: "trainer" }}\n'
        )
        self.start()

    def enter(self):
        """In a child process, before its program."""
        if self.libc.setns(self.namespace, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    def start(self):
        options = ["--config", str(self.config), "--serve", f"{self.address}:{PORT}"]
        self.daemon = Daemon(self.folder / f"helper{self.number}.sock", *options, limits=self.enter, keeps_state=False)
        assert self.daemon.is_ready, self.daemon.process.stderr.read()

    def disturb(self, kind):
        if kind == "kill":
            self.daemon.kill()
        elif kind == "stop":
            self.daemon.process.send_signal(signal.SIGSTOP)
        elif kind == "partition":
            ip("link", "set", self.ours, "down")
        elif kind == "half":
            ip("neighbour", "replace", f"10.77.{self.number}.1", "lladdr", "02:00:00:00:00:77", "dev", "line", "nud", "permanent", before=self.enter)

    def mend(self, kind):
        if kind == "kill":
            self.start()
        elif kind == "stop":
            self.daemon.process.send_signal(signal.SIGCONT)
        elif kind == "partition":
            ip("link", "set", self.ours, "up")
        elif kind == "half":
            ip("neighbour", "delete", f"10.77.{self.number}.1", "dev", "line", before=self.enter)

    def end(self):
        self.daemon.process.send_signal(signal.SIGCONT)
        self.daemon.kill()
        self.holder.kill()
        self.holder.wait()


class Asker:
    """The daemon beside the trainer, which keeps its state."""

    def __init__(self, folder, name, config, workers=1):
        self.config = folder / f"{name}.textproto"
        self.config.write_text(f"worker_defaults {{ workers: {workers} worker_nice: 0 }}\n" + config)
        self.socket = folder / f"{name}.sock"
        self.start()
        self.command = Penstock(folder, self.socket)

    def start(self):
        self.daemon = Daemon(self.socket, "--config", str(self.config))
        assert self.daemon.is_ready, self.daemon.process.stderr.read()

    def create(self, spec):
        made = self.command("create", spec)
        assert made.code == 0, made
        return penstock.attach("lent", str(self.socket))

    def helpers(self):
        told = self.command("stats", "lent", "--json")
        return json.loads(told.out).get("helpers", []) if told.code == 0 else []


def digest(batch):
    return hashlib.sha256(b"".join(bytes(memoryview(batch[name]).cast("B")) for name in sorted(batch))).digest()


def draw(dice, kills, helpers):
    """When what happens to whom: (seconds from the start, kind, numbers of helpers, how long)."""
    plan, at = [], 0.5
    for _ in range(kills):
        kind = dice.choice(KINDS)
        # In one case of ten all of them; else one is left.
        count = helpers if dice.random() < 0.1 else dice.randint(1, max(1, helpers - 1))
        who = dice.sample(range(helpers), count)
        lasts = 0 if kind == "daemon" else dice.uniform(0.05, 1.5)
        plan.append((at, kind, who, lasts))
        at += lasts + dice.uniform(0.1, 0.6)
    return plan


class Run:
    """What happens beside the trainer, in the trainer's thread: between two batches."""

    def __init__(self, asker, hosts, plan):
        self.asker, self.hosts = asker, hosts
        self.plan = collections.deque(plan)
        self.under_way = None  # (until, kind, hosts)
        self.last = ("", 0.0)  # what was disturbed last, and until when
        self.done = collections.Counter()
        self.gaps = collections.defaultdict(float)
        self.steps = self.left_out = 0  # of all helpers
        self.begun = time.monotonic()

    def is_over(self):
        return not self.plan and self.under_way is None and time.monotonic() > self.last[1] + AFTER_S

    def count(self):
        """A daemon counts from its start."""
        for helper in self.asker.helpers():
            self.steps += int(helper.get("steps", 0))
            self.left_out += int(helper.get("left_out", 0))

    def note_gap(self, began, ended):
        kind, until = self.last
        if self.under_way is None and began > until + AFTER_S:
            kind = "nothing"
        self.gaps[kind] = max(self.gaps[kind], ended - began)

    def go_on(self):
        now = time.monotonic()
        if self.under_way is not None:
            until, kind, hosts = self.under_way
            if now < until:
                return
            for host in hosts:
                host.mend(kind)
            self.under_way, self.last = None, (kind, time.monotonic())
        elif self.plan and now - self.begun >= self.plan[0][0]:
            at, kind, numbers, lasts = self.plan.popleft()
            # What came late comes late for all that follow.
            self.begun += max(0.0, now - self.begun - at)
            self.done[kind] += 1
            self.last = (kind, now)
            if kind == "daemon":
                self.count()
                self.asker.daemon.kill()
                self.asker.start()
                self.last = (kind, time.monotonic())
                return
            hosts = [self.hosts[number] for number in numbers]
            for host in hosts:
                host.disturb(kind)
            self.under_way = (time.monotonic() + lasts, kind, hosts)


def disturbed(asker, hosts, plan, spec):
    """The digests of all steps, and the run."""
    batches = asker.create(spec)
    names = {f"{host.address}:{PORT}" for host in hosts}
    eventually(lambda: {each["address"] for each in asker.helpers() if each.get("state") == "ready"} == names)
    run, digests = Run(asker, hosts, plan), []
    last = time.monotonic()
    for batch in batches:
        run.note_gap(last, time.monotonic())
        digests.append(digest(batch))
        run.go_on()
        if run.is_over():
            break
        last = time.monotonic()
    run.count()
    return digests, run


def campaign(arguments, seed, folder):
    dice = random.Random(seed)
    spec = folder / "lent.textproto"
    spec.write_text(SPEC.format(seed=dice.randrange(1000)))
    authority = Authority(folder / "authority", "hosts")
    certificate, key = authority.sign("trainer")
    hosts = [Host(folder, number, authority) for number in range(1, arguments.helpers + 1)]
    started = time.monotonic()
    try:
        addresses = " ".join(f'address: "{host.address}:{PORT}"' for host in hosts)
        asker = Asker(folder, "trainer", f'helpers {{ {addresses} certificate: "{certificate}" key: "{key}" authorities: "{authority.certificate}" }}\n')
        plan = draw(dice, arguments.kills, arguments.helpers)
        digests, run = disturbed(asker, hosts, plan, spec)
        asker.daemon.kill()
    finally:
        for host in hosts:
            host.end()
    alone = Asker(folder, "alone", "", workers=2)
    for number, (batch, found) in enumerate(zip(alone.create(spec), digests)):
        assert digest(batch) == found, f"step {number} has other bytes than in a run alone"
    alone.daemon.kill()
    gaps = {kind: round(seconds, 3) for kind, seconds in sorted(run.gaps.items()) if kind}
    print(f"{sum(run.done.values())} disturbances {dict(run.done)} in {len(digests)} steps, of which helpers made {run.steps}; left out {run.left_out} times")
    print(f"longest gaps in seconds: {gaps}")
    assert sum(run.done.values()) == arguments.kills
    assert run.steps > len(digests) // 20, "helpers have made next to nothing"
    assert run.left_out >= sum(run.done[kind] for kind in ("kill", "stop", "partition", "half")) // 4, "helpers were hardly disturbed"
    late = {kind: seconds for kind, seconds in gaps.items() if kind not in ("daemon", "nothing") and seconds > arguments.most_seconds}
    assert not late, f"gaps of more than {arguments.most_seconds} s: {late}"
    return time.monotonic() - started, {
        "kinds": dict(sorted(run.done.items())), "helpers": arguments.helpers, "steps": len(digests), "helped_steps": run.steps, "longest_gaps_s": gaps,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--helpers", type=int, default=3)
    parser.add_argument("--most-seconds", type=float, default=1.0, help="between two batches where a helper is disturbed")
    campaigns.add_options(parser)
    arguments = parser.parse_args()
    missing = [name for name in ("ip", "unshare", "openssl") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        sys.exit(f"it needs root and {', '.join(missing) or 'a network namespace of its own'}")
    if OWN_NAMESPACE not in os.environ:
        os.environ[OWN_NAMESPACE] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    ip("link", "set", "lo", "up")
    campaigns.run(arguments, "helpers", arguments.kills, "kills, stops and partitions", lambda seed, folder: campaign(arguments, seed, folder))


if __name__ == "__main__":
    main()
