"""The service under a systemd that has really booted, in a container of its own (systemd-nspawn)."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from machine import TREE, check, eventually, run

ENDLESS = """name: "endless" stage { range { stop: 1000000 } } stage { batch { batch_size: 10 } } stage { repeat {} }"""

# Its workers compute all the time.
BUSY = """name: "busy" stage { range { stop: 1000000 } } stage { batch { batch_size: 10000 } }
stage { map { out: "wave = sin(float64(value)) + cos(float64(value)) + exp(-sin(float64(value)))" } } stage { repeat {} }"""
ON_NODE = """name: "on_node" numa_node: 0 stage { range { stop: 1000 } } stage { batch { batch_size: 10 } } stage { repeat {} }"""


class Machine:
    """A booted root; commands run inside, beside its services."""

    def __init__(self, root, name):
        self.name = name
        self.root = root
        # SIGTERM would ask it to power off and wait; at the end of a test nothing is worth waiting for.
        self.process = subprocess.Popen(
            ["timeout", "-s", "KILL", "600", "systemd-nspawn", "--quiet", "--boot", f"--machine={name}", "--register=no",
             "--keep-unit", f"--directory={root.folder}", "--console=pipe", "systemd.unified_cgroup_hierarchy=0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.leader = None
        try:
            self.leader = eventually(self._find_leader)
            eventually(lambda: self.run("systemctl is-system-running").stdout.strip() in ("running", "degraded"))
        except BaseException:
            self.end()
            raise

    def _find_leader(self):
        assert self.process.poll() is None, self.process.stdout.read()
        # timeout's child is nspawn, and its child is the machine's first process.
        pid = self.process.pid
        for _ in range(2):
            children = [child for child in os.listdir("/proc") if child.isdigit() and _parent(child) == pid]
            names = {child: _name(child) for child in children}
            pid = next((int(child) for child, name in names.items() if name in ("systemd-nspawn", "systemd", "init")), None)
            if pid is None:
                return None
        return pid

    def run(self, command, **options):
        return run("nsenter", "--target", self.leader, "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd=/",
                   "env", "-i", "PATH=/usr/sbin:/usr/bin", "/bin/sh", "-c", "cd /; " + command, **options)

    def __call__(self, command):
        done = self.run(command)
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}\n{self.log()}"
        return done.stdout

    def show(self, field):
        return self(f"systemctl show --value -p {field} penstockd").strip()

    def log(self):
        return self.run("journalctl --no-pager -u penstockd -n 60").stdout

    def watchdog_timeouts(self):
        """How many times systemd has waited in vain for the daemon's sign of life."""
        return int(self.run("journalctl --no-pager -u penstockd | grep -c 'Watchdog timeout'").stdout)

    def end(self):
        # The machine's first process outlives nspawn; with it all others of the machine end.
        if self.leader is not None:
            os.kill(self.leader, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):  # it may not even have started
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        if self.leader is not None:
            eventually(lambda: not os.path.exists(f"/proc/{self.leader}/exe"))


def _field(pid, name):
    try:
        with open(f"/proc/{pid}/status") as status:
            return re.search(rf"^{name}:\t(.*)$", status.read(), re.MULTILINE)[1]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _parent(pid):
    return int(_field(pid, "PPid") or 0)


def _name(pid):
    return _field(pid, "Name")


_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE_DETACH, _PTRACE_SEIZE, _PTRACE_INTERRUPT = 17, 0x4206, 0x4207  # ptrace(2)
_WALL = 0x40000000  # waitpid(2): threads too


def _ptrace(request, thread):
    if _LIBC.ptrace(request, ctypes.c_long(thread), None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of thread {thread}")


class HungWorker:
    """A worker thread of a daemon in a machine, stopped in the middle of its work by ptrace(2) while all other threads go on."""

    def __init__(self, machine, pid):
        same = os.readlink(f"/proc/{machine.leader}/ns/pid")
        self._daemon = next(one for one in filter(str.isdigit, os.listdir("/proc"))
                            if _field(one, "NSpid").split()[-1:] == [pid] and os.readlink(f"/proc/{one}/ns/pid") == same)

    def __enter__(self):
        self._thread = eventually(self._stop_one)
        # As the daemon knows it.
        self.number = _field(self._thread, "NSpid").split()[-1]
        return self

    def __exit__(self, *_):
        if not self.has_ended():
            _ptrace(_PTRACE_DETACH, self._thread)

    def _stop_one(self):
        """A worker that computes; those that are found waiting go on."""
        for name in os.listdir(f"/proc/{self._daemon}/task"):
            if not _name(f"{self._daemon}/task/{name}").startswith("worker"):
                continue
            thread = int(name)
            _ptrace(_PTRACE_SEIZE, thread)
            _ptrace(_PTRACE_INTERRUPT, thread)
            os.waitpid(thread, _WALL)
            # Of a thread that is in no system call the file's number is negative.
            with open(f"/proc/{self._daemon}/task/{name}/syscall") as call:
                if call.read().startswith("-"):
                    return thread
            _ptrace(_PTRACE_DETACH, thread)
        return None

    def has_ended(self):
        """Its process ends with it when it is waited for, which its tracer has to do."""
        if self._thread is not None:
            ended, _ = os.waitpid(self._thread, _WALL | os.WNOHANG)
            if ended:
                self._thread = None
        return self._thread is None


@pytest.fixture(scope="module")
def machine(root):
    root("dpkg -i /penstock.deb; systemctl mask systemd-resolved systemd-networkd systemd-timesyncd console-getty >/dev/null 2>&1 || true")
    # The watchdog's time is shorter here, so that its test ends.
    override = root.folder / "etc/systemd/system/penstockd.service.d"
    override.mkdir(parents=True)
    (override / "test.conf").write_text("[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n")
    for name, spec in (("endless", ENDLESS), ("busy", BUSY), ("on_node", ON_NODE)):
        (root.folder / f"{name}.textproto").write_text(spec)
    machine = Machine(root, f"penstock-{os.getpid()}")
    yield machine
    machine.end()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed; ./dev test service installs it")
def test_the_score_of_the_unit():
    text = check("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
                 TREE / "config/systemd/penstockd.service")
    assert float(re.search(r"exposure level for penstockd.service: ([0-9.]+)", text)[1]) <= 2.0


def test_it_runs_confined_as_its_own_user(machine):
    eventually(lambda: machine.run("systemctl is-active penstockd").stdout.strip() == "active")
    pid = machine.show("MainPID")
    assert machine(f"stat -c %U /proc/{pid}").strip() == "penstock"
    status = machine(f"cat /proc/{pid}/status")
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    assert re.search(r"^Seccomp:\t2$", status, re.MULTILINE)
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert machine("stat -c '%U %G %a' /run/penstock/penstock.sock").split() == ["penstock", "penstock", "660"]
    # Worker threads have their priority, and a ring is made and filled, under the filter of system calls.
    machine("penstock create /endless.textproto")
    machine("penstock stats endless --interval 0.2")
    assert "10" in machine(f"ps -L -o ni= -p {pid} 2>/dev/null || cat /proc/{pid}/task/*/stat | cut -d')' -f2 | cut -d' ' -f18")


@pytest.mark.skipif(not os.path.exists("/sys/devices/system/node/node0"), reason="this kernel tells of no NUMA nodes")
def test_a_numa_node_is_had_under_the_filter_of_system_calls(machine):
    machine("penstock create /on_node.textproto")
    numa = json.loads(machine("penstock top on_node --json --count 1"))["numa"]
    assert numa["node"] == 0 and numa["ring"] and numa["notice"] == []
    machine("penstock delete on_node")


def test_the_socket_waits_for_the_daemon(machine):
    machine("systemctl stop penstockd")
    assert machine.run("systemctl is-active penstockd.socket").stdout.strip() == "active"
    # A connection starts it.
    machine("penstock list")
    assert machine.run("systemctl is-active penstockd").stdout.strip() == "active"


def test_reload_keeps_the_process_and_refuses_what_is_bad(machine):
    pid = machine.show("MainPID")
    machine("echo 'log_level: LOG_LEVEL_DEBUG' >> /etc/penstock/penstockd.textproto; systemctl reload penstockd")
    eventually(lambda: "took the configuration anew" in machine.log())
    machine("cp /etc/penstock/penstockd.textproto /good; echo 'nonsense: 1' >> /etc/penstock/penstockd.textproto; systemctl reload penstockd")
    eventually(lambda: "kept the configuration as it was" in machine.log())
    assert machine.show("MainPID") == pid
    # The level of a line reaches the journal.
    assert "kept the configuration" in machine("journalctl --no-pager -u penstockd -p err")
    # A restart with it fails at once, with 78, and is not tried again.
    assert machine.run("systemctl restart penstockd").returncode != 0
    assert "nonsense" in machine.log()
    # One that waits for its next try is "activating".
    assert machine.show("ActiveState") == "failed"
    assert machine.show("ExecMainStatus") == "78"
    assert machine.show("NRestarts") == "0"
    machine("cp /good /etc/penstock/penstockd.textproto; systemctl reset-failed penstockd; systemctl restart penstockd")


class Trainer:
    """`penstock run` inside. Counts its steps in a file, and notes in another one what does not follow on the step before it."""

    def __init__(self, machine, spec, name):
        self.machine = machine
        self.name = name
        count = f"""mawk '$2 != next_step + 0 {{ print next_step, $2 > "/{name}.gaps" }}
                          {{ next_step = $2 + 1; print next_step > "/{name}.steps"; close("/{name}.steps") }}'"""
        machine(f"(penstock --socket /run/penstock/penstock.sock run {spec} --name {name} --steps 1000000000 2>/{name}.err | {count}) >/dev/null 2>&1 &")
        eventually(self.steps)

    def steps(self):
        return int(self.machine.run(f"cat /{self.name}.steps").stdout or 0)

    def goes_on(self, steps):
        before = self.steps()
        eventually(lambda: self.steps() > before + steps)

    def end(self):
        self.machine(f"penstock delete {self.name}")
        eventually(lambda: self.machine.run(f"grep NOT_FOUND /{self.name}.err").returncode == 0)
        gaps = self.machine.root.folder / f"{self.name}.gaps"
        assert not gaps.exists(), gaps.read_text()


def test_a_crash_is_a_pause_for_a_trainer(machine):
    trainer = Trainer(machine, "/endless.textproto", "crashed")
    pid = machine.show("MainPID")
    machine(f"kill -KILL {pid}")
    eventually(lambda: machine.show("MainPID") not in ("0", pid))
    machine("penstock list")
    trainer.goes_on(1000)
    trainer.end()


def test_fault_53_the_watchdog_restarts_a_daemon_that_stands_still(machine):
    trainer = Trainer(machine, "/endless.textproto", "stopped")
    pid = machine.show("MainPID")
    before = machine.watchdog_timeouts()
    machine(f"kill -STOP {pid}")
    eventually(lambda: machine.show("MainPID") not in ("0", pid))
    assert machine.watchdog_timeouts() == before + 1
    machine("penstock list")
    trainer.goes_on(1000)
    trainer.end()


def test_fault_53_the_watchdog_restarts_a_daemon_whose_worker_hangs(machine):
    """Its other threads go on: it answers, and says itself why it no longer feeds the watchdog."""
    trainer = Trainer(machine, "/busy.textproto", "hung")
    pid = machine.show("MainPID")
    before = machine.watchdog_timeouts()
    with HungWorker(machine, pid) as worker:
        eventually(lambda: f"a worker hangs (thread {worker.number})" in machine.log())
        if machine.show("MainPID") == pid:
            machine("penstock list")
        eventually(lambda: worker.has_ended() and machine.show("MainPID") not in ("0", pid))
    assert machine.watchdog_timeouts() == before + 1
    machine("penstock list")
    trainer.goes_on(100)
    trainer.end()


def test_stop_is_clean(machine):
    machine("penstock create /endless.textproto; systemctl stop penstockd.socket penstockd")
    assert machine.show("Result") == "success"
    assert machine.show("ExecMainStatus") == "0"
