"""Who waits for whom, and until when: users who may only attach, groups that have nobody left, and what is told of them (fault 69)."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from programs import Daemon, Penstock, eventually, process_fields
from strangers import Stranger, place  # noqa: F401 (a fixture)
from test_budgets import worker_threads

penstock = pytest.importorskip("penstock")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

_STRANGER = 54321

def is_quiet(pid):
    """Whether a process uses less than a tenth of a processor for a moment."""

    def ticks():
        fields = process_fields(pid)
        return int(fields[11]) + int(fields[12])

    before, begin = ticks(), time.monotonic()
    time.sleep(0.5)
    return ticks() - before < 0.1 * (time.monotonic() - begin) * os.sysconf("SC_CLK_TCK")


# Says "in" when it is attached and has taken as many batches as it was told to, and then how far on its next one is, once it is told to go on.
GUEST = """
import sys
import penstock
options = eval(sys.argv[2])
takes = options.pop("takes")
loader = penstock.attach("p", socket=sys.argv[1], timeout=60, reconnect=5, **options)
kept = [next(loader) for _ in range(takes)]
last = loader.step if takes else None
print("in", flush=True)
sys.stdin.readline()
try:
    next(loader)
    print("next", loader.step - last if takes else "", flush=True)
except penstock.Error as error:
    print(type(error).__name__, error, flush=True)
"""

# Groups under ever new names: of each a batch is taken, and then its process is killed.
CHURN = """
import os, sys
import penstock
for number in range(1000):
    child = os.fork()
    if child == 0:
        loader = penstock.attach("p", socket=sys.argv[1], timeout=60, mode="split", group=f"e{number}")
        next(loader)
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    print(number, flush=True)
"""


class Served:
    def __init__(self, folder, wait_ms, *options):
        config = folder / "penstockd.textproto"
        config.write_text(f"""attach_only_wait_ms: {wait_ms}
            access_rule {{ uids: {_STRANGER} pipelines: "p" rights: RIGHT_ATTACH rights: RIGHT_READ }}""")
        self.socket = str(folder / "run" / "penstock.sock")
        self.words = [self.socket, "--config", str(config), *options]
        self.start()
        (folder / "run").chmod(0o755)
        self.owner = Penstock(folder, self.socket)
        self.stranger = Stranger(folder, self.socket, _STRANGER)
        self.processes = []
        spec = folder / "p.textproto"
        spec.write_text('name: "p" stage { range { stop: 1000000000 } } stage { batch { batch_size: 2 } }')
        assert self.owner("create", spec).code == 0

    def start(self):
        self.daemon = Daemon(*self.words)
        os.chmod(self.socket, 0o666)

    def restart(self):
        """Its trainers' processes die with it."""
        self.daemon.kill()
        for process in self.processes:
            process.kill()
            process.wait()
        self.start()

    def run(self, code, *words, guest):
        command = [*(self.stranger.identity if guest else []), sys.executable, "-W", "ignore", "-c", code, self.socket, *words]
        process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, HOME="/"))
        self.processes.append(process)
        return process

    def enters(self, guest=True, takes=0, **options):
        process = self.run(GUEST, repr(dict(options, takes=takes)), guest=guest)
        assert process.stdout.readline() == "in\n"
        return process

    def attach(self, timeout=60, **options):
        return penstock.attach("p", socket=self.socket, timeout=timeout, **options)

    def explain(self):
        return self.owner("explain", "p").out

    def stop(self):
        for process in self.processes:
            process.kill()
            process.communicate()
        self.daemon.stop()


@pytest.fixture
def serve(place):  # noqa: F811
    served = []

    def start(wait_ms=200, *options):
        served.append(Served(place, wait_ms, *options))
        return served[-1]

    yield start
    for one in served:
        one.stop()


def goes_on(loader, batches=3000):
    first = loader.step
    for step in range(first + 1, first + 1 + batches):
        batch = next(loader)
        assert (loader.step, int(batch[0])) == (step, 2 * step)


def says_next(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


@pytest.mark.parametrize("options, end", [
    ({"mode": "split", "group": "evil"}, "next"),
    ({"mode": "split", "group": "evil", "takes": 1}, "DetachedError DETACHED: it held up other consumers (group \"evil\", of user 54321"),
    ({"mode": "rank", "rank": 0, "world_size": 64, "group": "evil"}, "DetachedError DETACHED: it held up other consumers (group \"evil\", 63 of"),
    ({"mode": "rank", "rank": 0, "world_size": 1, "group": "evil", "takes": 2}, "next 1\n"),
    ({"lag": 4_000_000, "group": "evil", "takes": 2}, "next 1\n"),
    ({"lag": 4_000_000}, "next"),
], ids=["split", "split-taken", "ranks", "rank", "broadcast", "untaken"])  # fmt: skip
def test_fault_69_who_may_only_attach_stops_nobody(serve, options, end):
    server = serve()
    loader = server.attach(timeout=20)
    next(loader)
    process = server.enters(**options)
    goes_on(loader)
    assert says_next(process).startswith(end)
    goes_on(loader)


def test_fault_69_groups_that_come_and_go_stop_nobody(serve):
    server = serve()
    loader = server.attach(timeout=20)
    next(loader)
    process = server.run(CHURN, guest=True)
    assert process.stdout.readline()
    goes_on(loader)
    # Whoever comes later finds nothing left of what was waited for.
    for _ in range(5):
        process.stdout.readline()
        goes_on(loader, 200)
    process.kill()
    names = server.owner("groups", "p").out
    assert len(re.findall(r"^e\d", names, re.MULTILINE)) <= 9, names


def test_fault_69_who_is_waited_for_is_named_and_can_be_ended(serve):
    server = serve(wait_ms=3_600_000)
    loader = server.attach(timeout=1.5)
    next(loader)
    process = server.enters(mode="split", group="evil", takes=1)

    def is_held_up():
        try:
            next(loader)
        except penstock.DeadlineExceededError:
            return "group evil" in server.explain()
        return False

    eventually(is_held_up)
    told = server.explain().splitlines()[-1]
    assert re.search(rf"group evil \(split, of user {_STRANGER}\) is the one they wait for, for [\d.]+ s: its consumer \d+ "
                     r"\(process (\d+)\) asks for no batch; they wait for 36\d\d(\.\d)? s at most", told), told  # fmt: skip
    assert f"process {process.pid}" in told
    assert re.search(rf"^evil +split +{_STRANGER} .*holds up others for", server.owner("groups", "p").out, re.MULTILINE)
    assert "others wait for group evil (split, user 54321)" in server.owner("top", "p", "--count", 1).out
    refused = server.stranger("groups", "p", "--drop", "evil")
    assert refused.code == 1 and "PERMISSION_DENIED" in refused.err, refused
    assert server.owner("groups", "p", "--drop", "evil").code == 0
    for _ in range(1000):
        next(loader)
    assert says_next(process).startswith("DetachedError DETACHED: its group was ended by the control plane")
    missing = server.owner("groups", "p", "--drop", "evil")
    assert missing.code == 1 and "no group evil" in missing.err, missing


def test_fault_69_a_group_that_is_kept_is_seen_and_can_be_dropped(serve):
    server = serve(200, "--rejoin-seconds", "3600")
    loader = server.attach(timeout=1.5)
    next(loader)
    process = server.enters(guest=False, mode="split", group="workers", takes=1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    def is_held_up():
        try:
            next(loader)
        except penstock.DeadlineExceededError:
            return "nobody takes its batches" in server.explain()
        return False

    eventually(is_held_up)
    assert "group workers (split, of user 0) is the one they wait for" in server.explain()
    assert re.search(r"^workers +split +0 +0 .*kept, for 3\d\d\d\.\d s more", server.owner("groups", "p").out, re.MULTILINE)
    assert server.owner("groups", "p", "--drop", "workers").code == 0
    for _ in range(1000):
        next(loader)
    assert "workers" not in server.owner("groups", "p").out


@pytest.mark.parametrize("takes", [0, 1])
def test_fault_69_a_worker_that_leaves_costs_nobody_anything(serve, takes):
    server = serve(200, "--rejoin-seconds", "3600")
    loader = server.attach(timeout=20)
    next(loader)
    with server.attach(mode="split", group="workers") as worker:
        for _ in range(takes):
            next(worker)
    if not takes:
        assert "workers" not in server.owner("groups", "p").out
    goes_on(loader)
    assert "workers" not in server.owner("groups", "p").out


def test_fault_69_a_worker_of_the_owner_that_pauses_loses_nothing(serve):
    server = serve()
    loader = server.attach(timeout=1)
    next(loader)
    worker = server.attach(mode="split", group="workers")
    first = next(worker) is not None and worker.step
    with pytest.raises(penstock.DeadlineExceededError):
        for _ in range(1000):
            next(loader)
    for step in range(first + 1, first + 100):
        next(worker)
        assert worker.step == step
        next(loader)


def test_fault_69_a_group_is_its_users(serve):
    server = serve()
    worker = server.attach(mode="split", group="workers")
    next(worker)
    process = server.run(GUEST, repr({"mode": "split", "group": "workers", "takes": 0}), guest=True)
    assert process.stdout.readline() == "", "a guest takes none of the owner's batches"
    guest = server.enters(mode="split", group="others", takes=1)
    next(server.attach(mode="split", group="others"))
    assert says_next(guest).startswith("DetachedError DETACHED: a user of more rights has taken the group's name")


def test_fault_69_a_split_group_stays_its_users_over_the_daemons_death(serve, place):  # noqa: F811
    server = serve()
    server.enters(guest=False, mode="split", group="workers", takes=1)
    server.restart()
    refused = server.run(GUEST, repr({"mode": "split", "group": "workers", "takes": 0}), guest=True)
    assert refused.stdout.readline() == "", "a guest takes none of the owner's batches"
    assert re.search(r"^workers +split +0 ", server.owner("groups", "p").out, re.MULTILINE)
    again = server.attach(mode="split", group="workers")
    next(again)
    assert (again.step, again.redelivered) == (0, True)


def test_a_guest_moves_nobody_by_its_cursor(serve, place):  # noqa: F811
    server = serve()
    ran = server.owner("run", "p.textproto", "--name", "other", "--steps", 500, "--cursor-out", place / "cursor")
    assert ran.code == 0, ran
    cursor = (place / "cursor").read_bytes()
    guest = server.enters(cursor=cursor, takes=2)
    loader = server.attach()
    next(loader)
    assert loader.step == 0
    assert says_next(guest) == "next 1\n"
    guest = server.enters(cursor=cursor, takes=2)
    changed = server.owner("update", "p", "--skip", 3)
    assert int(re.search(r"from step (\d+) on", changed.out)[1]) < 100, changed
    assert "DETACHED: the pipeline was changed in front of its step" in says_next(guest)


# Takes batches as fast as it gets them, until it is told to stop; then it says how many it had.
READER = """
import sys, threading
import penstock
loader = penstock.attach("p", socket=sys.argv[1], timeout=60, reconnect=5, **eval(sys.argv[2]))
next(loader)
print("in", flush=True)
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
count = 0
while not stop.is_set():
    next(loader)
    count += 1
print(count, flush=True)
"""


def test_fault_69_what_guests_catch_up_with_has_bounds_for_the_owner(serve, place):  # noqa: F811
    server = serve()
    assert server.owner("delete", "p").code == 0
    # Slots of 1 MiB.
    (place / "p.textproto").write_text(
        'name: "p" workers: 2 ring { slots: 4 } stage { range { stop: 1000000000000 } } stage { batch { batch_size: 131072 } }')
    assert server.owner("create", "p.textproto").code == 0
    ran = server.owner("run", "p.textproto", "--name", "other", "--steps", 500, "--cursor-out", place / "cursor")
    assert ran.code == 0, ran
    cursor = (place / "cursor").read_bytes()
    loader = server.attach()
    next(loader)
    first = loader.cursor
    for _ in range(50):
        next(loader)
    before = len(worker_threads(server.daemon.pid))
    guests = []
    for number in range(7):
        guests.append(server.run(READER, repr({"cursor": cursor, "group": f"g{number}"}), guest=True))
        assert guests[-1].stdout.readline() == "in\n"
    # The eighth place is another user's.
    refused = server.run(READER, repr({"cursor": cursor, "group": "one more"}), guest=True)
    assert refused.stdout.readline() == ""
    with server.attach(cursor=first, group="mine") as mine:
        next(mine)
        assert mine.step == 1
        assert len(worker_threads(server.daemon.pid)) <= before + 8 * 2
    # The stream that everybody shares is one of those that the processors are divided among.
    had = 0
    for _ in range(100):
        next(loader)
        had += 1
    shared = pathlib.Path(f"/proc/{server.daemon.pid}/status").read_text()
    # Three slots for each, and what huge pages round up.
    assert int(re.search(r"RssShmem:\s+(\d+) kB", shared)[1]) < (4 + 8 * (3 + 2)) * 1024, shared
    counts = []
    for guest in guests:
        print(file=guest.stdin, flush=True)
    for guest in guests:
        counts.append(int(guest.stdout.readline()))
        guest.wait()
    assert min(counts) > 0 and had > sum(counts) / 7 / 10, (had, counts)
    # Those who take nothing cost nothing.
    for number in range(7):
        server.enters(cursor=cursor, group=f"h{number}", takes=1)
    eventually(lambda: is_quiet(server.daemon.pid))
