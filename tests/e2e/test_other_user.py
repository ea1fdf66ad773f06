"""Python functions in a daemon that is another user's: whose processes call them, who waits, and what nobody else can have called (fault 64)."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from programs import Daemon, Penstock, eventually, is_alive

penstock = pytest.importorskip("penstock")
np = pytest.importorskip("numpy")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

# The socket's, whose members may connect.
_GROUP = 54330
_MAKER = 54331
_OTHER = 54332

# Functions of a module go by name, so that the same one is pickled to the same bytes in each process.
_THEIRS = '''
import os, pathlib, signal, time
import numpy as np
HERE = pathlib.Path(__file__).parent

def who(x):
    return {"x": x, "uid": np.int64(os.getuid()), "process": np.int64(os.getpid())}

def square(x):
    with open(HERE / "callers" / str(os.getuid()), "a") as file:
        file.write(f"{os.getpid()}\\n")
    return x * x

def hang_at_three(x):
    while x == 3:
        time.sleep(1)
    return x

def die_at_three(x):
    if x == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    return x

def other(x):
    (HERE / "callers" / "other").touch()
    return x
'''

# Makes a pipeline and reads it: a line for each batch. Behind the end, and where it reads nothing, it waits until its input is closed.
_MAKES = '''
import sys, numpy as np, penstock, theirs
socket, name, function, count, reads, options = sys.argv[1], sys.argv[2], getattr(theirs, sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "reads", eval(sys.argv[6])
output = None if function is theirs.who else penstock.TensorSpec((), np.int64)
cache = options.pop("cache", None)
dataset = penstock.Dataset.range(count).map(function, python=True, output=output, **options)
dataset = (dataset if cache is None else dataset.cache(cache)).batch(4)
loader = dataset.loader(socket=socket, name=name or None)
try:
    if reads:
        for batch in loader:
            print({key: value.tolist() for key, value in batch.items()} if isinstance(batch, dict) else batch.tolist(), flush=True)
    else:
        loader.step
    print("end", flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
sys.stdin.read()
'''

_OFFERS = '''
import sys, numpy as np, penstock, theirs
held = penstock.Dataset.range(3).map(getattr(theirs, sys.argv[2]), python=True, output=penstock.TensorSpec((), np.int64))
print(penstock.offer_workers(sys.argv[1]), flush=True)
sys.stdin.read()
'''


class Theirs:
    """Programs of another user."""

    def __init__(self, folder, socket):
        self.folder = folder
        self.socket = socket
        self.running = []
        # Short, as a private daemon's socket lies there, and open to them, as a machine's /tmp need not be.
        self.temporary = tempfile.mkdtemp(prefix="theirs-", dir="/tmp")
        os.chmod(self.temporary, 0o1777)

    def start(self, code, *words, uid=_MAKER):
        environment = dict(os.environ, HOME="/", TMPDIR=self.temporary)
        environment["PYTHONPATH"] = os.pathsep.join([str(self.folder), environment.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", f"--groups={_GROUP}", sys.executable, "-c", code, self.socket, *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder, env=environment,
        )
        self.running.append(process)
        return process

    def make(self, function, name="", count=16, reads=True, uid=_MAKER, **options):
        return self.start(_MAKES, name, function, count, "reads" if reads else "", repr(options), uid=uid)

    def offer(self, function, uid=_MAKER):
        process = self.start(_OFFERS, function, uid=uid)
        assert process.stdout.readline() == "True\n"
        return process

    def callers(self):
        """Who has called theirs.square."""
        return {path.name: set(path.read_text().split()) for path in (self.folder / "callers").iterdir()}

    def command(self, uid):
        penstock_command = Penstock(self.folder, self.socket)
        words = penstock_command.command
        penstock_command.command = lambda *more: ["setpriv", f"--reuid={uid}", f"--regid={uid}", f"--groups={_GROUP}", *words(*more)]
        return penstock_command


def lines_of(process):
    return iter(process.stdout.readline, "")


@pytest.fixture
def place(tmp_path):
    """A folder that others may enter: tmp_path's parents are root's alone."""
    modes = {path: path.stat().st_mode for path in (tmp_path, *tmp_path.parents) if path.stat().st_mode & 0o5 != 0o5}
    for path in modes:
        path.chmod(0o755)
    (tmp_path / "callers").mkdir()
    (tmp_path / "callers").chmod(0o777)
    (tmp_path / "run").mkdir()
    os.chown(tmp_path / "run", 0, _GROUP)
    (tmp_path / "run").chmod(0o2755)  # a socket that is made there is the group's
    (tmp_path / "theirs.py").write_text(_THEIRS)
    (tmp_path / "penstockd.textproto").write_text(f"allowed_uids: [{_MAKER}, {_OTHER}]")
    yield tmp_path
    for path, mode in modes.items():
        path.chmod(mode & 0o7777)


@pytest.fixture
def serve(place):
    daemons = []

    def start():
        daemon = Daemon(place / "run" / "penstock.sock", "--config", str(place / "penstockd.textproto"))
        daemons.append(daemon)
        return daemon

    yield start
    for daemon in daemons:
        daemon.stop()


@pytest.fixture
def theirs(serve, place):
    theirs = Theirs(place, serve().socket)
    yield theirs
    for process in theirs.running:
        process.kill()
        process.communicate()
    shutil.rmtree(theirs.temporary)


def explained(theirs, name):
    result = Penstock(theirs.folder, theirs.socket)("explain", name)
    return result.out + result.err


def stage_of(theirs, name, stage="python"):
    """What the workers of a pipeline's stage do, as `penstock stats --json` says it."""
    told = json.loads(Penstock(theirs.folder, theirs.socket)("stats", name, "--interval", "0", "--json").out.splitlines()[0])
    return next(one["python_workers"] for one in told["stages"] if "python_workers" in one)


def test_a_strangers_functions_run_as_himself(theirs):
    maker = theirs.make("who", workers=2)
    lines = [line for _, line in zip(range(5), lines_of(maker))]
    assert lines.pop() == "end\n", lines
    batches = [eval(line) for line in lines]
    assert [x for batch in batches for x in batch["x"]] == list(range(16))
    assert {uid for batch in batches for uid in batch["uid"]} == {_MAKER}


def test_whose_code_makes_the_bytes_is_told(theirs):
    maker = theirs.make("square", name="squares", reads=False)
    assert maker.stdout.readline() == "end\n"
    anybody = Penstock(theirs.folder, theirs.socket)
    listed = json.loads(anybody("list", "--json").out)
    assert listed["python_uid"] == _MAKER
    assert f"functions of user {_MAKER} compute bytes of it" in anybody("get", "squares").out
    eventually(lambda: stage_of(theirs, "squares").get("rows"))
    assert stage_of(theirs, "squares")["uid"] == _MAKER
    assert stage_of(theirs, "squares")["offers"] == 1
    # Anybody may read them.
    with penstock.attach("squares", socket=theirs.socket) as loader:
        assert np.concatenate(list(loader)).tolist() == [x * x for x in range(16)]


def test_fault_64_a_function_of_the_daemons_own_user_is_not_opened_for_another(theirs):
    """The daemon might open it, as it is its own user's: whoever names its path has no right to run it."""
    from penstock._dataset._python import FunctionFile

    sys.path.insert(0, str(theirs.folder))
    try:
        import theirs as module

        mine = FunctionFile(module.other)
    finally:
        sys.path.remove(str(theirs.folder))
    spec = theirs.folder / "spec.textproto"
    spec.write_text(
        'name: "borrowed" stage { range { stop: 8 } } stage { python { function { name: "other" '
        f'file: "{mine.spec_value()}" code: "{mine.code}" output {{ name: "value" dtype: "int64" }} structure: "null" }} }} }}'
    )
    assert theirs.command(_MAKER)("create", spec).code == 0
    eventually(lambda: f"Python workers of user {_MAKER}: no process of that user offers any" in explained(theirs, "borrowed"))
    # A process of his that offers workers has another function of that path, or none; and those of others are not asked.
    theirs.offer("square")
    theirs.offer("other", uid=_OTHER)
    eventually(lambda: "none has this function" in explained(theirs, "borrowed"))
    assert theirs.callers() == {}
    # It is the code that tells, where somebody has the same function himself.
    theirs.offer("other")
    eventually(lambda: "other" in theirs.callers())


def test_fault_64_a_pipeline_waits_for_its_maker_and_says_so(theirs):
    maker = theirs.make("square", name="squares", count=4000, reads=False, workers=2)
    assert maker.stdout.readline() == "end\n"
    eventually(lambda: len(theirs.callers().get(str(_MAKER), ())) == 2)
    workers = [int(process) for process in theirs.callers()[str(_MAKER)]]
    maker.kill()
    maker.wait()
    # They end with whoever has started them.
    eventually(lambda: not any(map(is_alive, workers)))
    with penstock.attach("squares", socket=theirs.socket) as loader:
        first = [next(loader).tolist() for _ in range(loader.stats()["ready"] if "ready" in loader.stats() else 1)]
        eventually(lambda: f"Python workers of user {_MAKER}: no process of that user offers any" in explained(theirs, "squares"))
        # Somebody else's are not his.
        theirs.offer("square", uid=_OTHER)
        # The same function, in another process of his.
        theirs.offer("square")
        rest = [batch.tolist() for batch in loader]
    assert [x for batch in first + rest for x in batch] == [x * x for x in range(4000)]
    assert set(theirs.callers()) == {str(_MAKER)}


def test_fault_64_the_daemon_is_killed_and_the_maker_serves_its_successor(theirs, serve, place):
    maker = theirs.make("square", name="squares", count=4000)
    lines = lines_of(maker)
    got = [eval(next(lines)) for _ in range(5)]
    daemon = next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                  if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().find(theirs.socket.encode() + b"\0--ready-fd") > 0)
    os.kill(daemon, signal.SIGKILL)
    eventually(lambda: not is_alive(daemon))
    # What it leaves behind names the function, and holds nothing of it.
    kept = b"".join(path.read_bytes() for path in pathlib.Path(f"{theirs.socket}.state").rglob("*") if path.is_file())
    assert b"/proc/" in kept and b"theirs" not in kept and b"\x80\x05" not in kept
    serve()
    for line in lines:
        if line == "end\n":
            break
        got.append(eval(line))
    assert [x for batch in got for x in batch] == [x * x for x in range(4000)]


def test_fault_64_a_row_that_harms_its_process_is_that_rows_failure(theirs):
    told = [line for _, line in zip(range(2), lines_of(theirs.make("die_at_three", count=4)))]
    assert "DataLossError" in told[0] and "ended its process (SIGSEGV) twice" in told[0]
    told = [line for _, line in zip(range(2), lines_of(theirs.make("hang_at_three", count=4, timeout_ms=300)))]
    assert "took longer than timeout_ms (300) twice" in told[0]


def test_fault_64_a_maker_that_stands_still_holds_up_nobody_else(theirs):
    stands = theirs.make("hang_at_three", name="hangs", count=400, reads=False)
    assert stands.stdout.readline() == "end\n"
    eventually(lambda: stage_of(theirs, "hangs").get("oldest_row_seconds", 0) > 0)
    os.kill(stands.pid, signal.SIGSTOP)
    try:
        assert [line for line in lines_of(theirs.make("square", count=8)) if line != "end\n" or theirs.running[-1].kill()] == ["[0, 1, 4, 9]\n", "[16, 25, 36, 49]\n"]
        assert Penstock(theirs.folder, theirs.socket)("delete", "hangs").code == 0
    finally:
        os.kill(stands.pid, signal.SIGCONT)


def test_fault_64_what_a_function_gave_is_kept_for_its_own_user(theirs):
    """Whoever offers a function says what its hash is, so that a cache by that hash would be another one's word."""
    kept = theirs.folder / "cache"
    for uid, calls in ((_MAKER, True), (_MAKER, False), (_OTHER, True)):
        before = theirs.callers()
        maker = theirs.make("square", count=8, uid=uid, cache=str(kept), seed=1)
        assert [next(lines_of(maker)) for _ in range(3)] == ["[0, 1, 4, 9]\n", "[16, 25, 36, 49]\n", "end\n"]
        assert (theirs.callers() != before) == calls


def test_fault_64_nobody_else_has_a_pipeline_call_other_functions(theirs):
    maker = theirs.make("square", name="squares", count=4000, reads=False)
    assert maker.stdout.readline() == "end\n"
    theirs.offer("other")
    spec = Penstock(theirs.folder, theirs.socket)("get", "squares").out
    path = theirs.folder / "other.textproto"
    path.write_text(spec.replace('name: "square"', 'name: "other"').replace('code: "', 'code: "f'))
    for uid in (0, _OTHER):
        refused = theirs.command(uid)("update", "squares", "--spec", path)
        assert refused.code == 1
        assert f"its code would run as user {_MAKER}, whose pipeline it is" in refused.err
