"""The service under a systemd that has really booted, in a container of its own (systemd-nspawn)."""

import os
import re
import shutil
import signal
import subprocess

import pytest

from machine import TREE, check, eventually, run

ENDLESS = """name: "endless" stage { range { stop: 1000000 } } stage { batch { batch_size: 10 } } stage { repeat {} }"""


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
        self.leader = eventually(self._find_leader)
        eventually(lambda: self.run("systemctl is-system-running").stdout.strip() in ("running", "degraded"))

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

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)


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


@pytest.fixture(scope="module")
def machine(root):
    root("dpkg -i /penstock.deb; systemctl mask systemd-resolved systemd-networkd systemd-timesyncd console-getty >/dev/null 2>&1 || true")
    # The watchdog's time is shorter here, so that its test ends.
    override = root.folder / "etc/systemd/system/penstockd.service.d"
    override.mkdir(parents=True)
    (override / "test.conf").write_text("[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n")
    (root.folder / "endless.textproto").write_text(ENDLESS)
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
    machine("cp /good /etc/penstock/penstockd.textproto; systemctl reset-failed penstockd; systemctl restart penstockd")


# Counts the steps of `penstock run` in a file, and notes in another one what does not follow on the step before it.
COUNT = """mawk '$2 != next_step + 0 { print next_step, $2 > "/gaps" } { next_step = $2 + 1; print next_step > "/steps"; close("/steps") }'"""


def test_a_crash_is_a_pause_for_a_trainer(machine):
    machine(f"(penstock --socket /run/penstock/penstock.sock run /endless.textproto --name trained --steps 1000000000 2>/run.err | {COUNT}) >/dev/null 2>&1 &")

    def steps():
        return int(machine.run("cat /steps").stdout or 0)

    eventually(steps)
    pid = machine.show("MainPID")
    machine(f"kill -KILL {pid}")
    eventually(lambda: machine.show("MainPID") not in ("0", pid))
    machine("penstock list")
    before = steps()
    eventually(lambda: steps() > before + 1000)
    machine("penstock delete trained")
    eventually(lambda: machine.run("grep NOT_FOUND /run.err").returncode == 0)
    assert not (machine.root.folder / "gaps").exists(), (machine.root.folder / "gaps").read_text()


def test_fault_53_the_watchdog_restarts_a_daemon_that_hangs(machine):
    pid = machine.show("MainPID")
    machine(f"kill -STOP {pid}")
    eventually(lambda: machine.show("MainPID") not in ("0", pid) and "atchdog" in machine.log())
    machine("penstock list")


def test_stop_is_clean(machine):
    machine("penstock create /endless.textproto; systemctl stop penstockd.socket penstockd")
    assert machine.show("Result") == "success"
    assert machine.show("ExecMainStatus") == "0"
