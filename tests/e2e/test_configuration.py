"""The configuration of a running daemon, its log, and how it stops."""

import json
import os
import select
import signal
import subprocess
import time

import pytest

from programs import Daemon, Penstock, eventually, process_fields, program


class Log:
    """What a daemon writes to its standard error, so far."""

    def __init__(self, daemon):
        self.descriptor = daemon.process.stderr.fileno()
        self.text = ""

    def has(self, text):
        while select.select([self.descriptor], [], [], 0)[0]:
            read = os.read(self.descriptor, 65536)
            if not read:
                break
            self.text += read.decode()
        return text in self.text


@pytest.fixture
def configured(tmp_path):
    daemons = []

    def start(text, *options):
        path = tmp_path / "penstockd.textproto"
        path.write_text(text)
        daemon = Daemon(tmp_path / "run" / "penstock.sock", "--config", str(path), *options)
        daemon.config = path
        daemons.append(daemon)
        return daemon

    yield start
    for daemon in daemons:
        daemon.stop()


def test_hup_takes_a_good_configuration(configured):
    daemon = configured("log_level: LOG_LEVEL_ERROR")
    log = Log(daemon)
    daemon.config.write_text("log_level: LOG_LEVEL_DEBUG")
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: log.has("took the configuration anew"))


@pytest.mark.parametrize("text, complaint", [
    ("worker_defaults { workers: -1 }", ":1:19: worker_defaults.workers out of range"),
    ("log_level: LOG_LEVEL_DEBUG\nsokcet: 'x'", ":2:7: unknown field"),
    ("log_level: LOG_LEVEL_ERROR http { port: 9 }", "cannot change this setting, restart it: http"),
    ("log_level: LOG_LEVEL_ERROR helpers { address: '10.0.0.7:9' }", "cannot change this setting, restart it: helpers"),
    ("log_level: LOG_LEVEL_ERROR serve { address: '127.0.0.1:9' }", "cannot change this setting, restart it: serve"),
    (None, "cannot open"),
])
def test_fault_52_hup_with_a_bad_configuration_keeps_the_old_one(configured, tmp_path, text, complaint):
    daemon = configured("worker_defaults { workers: 1 }")
    log = Log(daemon)
    if text is None:
        daemon.config.unlink()
    else:
        daemon.config.write_text(text)
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: log.has("kept the configuration as it was"))
    assert complaint in log.text
    # Nothing of it holds: information is still logged.
    assert Penstock(tmp_path, daemon.socket)("list").code == 0
    daemon.config.write_text("worker_defaults { workers: 2 }")
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: log.has("took the configuration anew"))


@pytest.mark.parametrize("stands_still", [False, True])
def test_fault_52_a_storm_of_hups_is_coalesced_and_the_last_configuration_holds(configured, tmp_path, counter, stands_still):
    daemon = configured("log_lines_per_cause: 10000")
    log = Log(daemon)
    command, spec = Penstock(tmp_path, daemon.socket), counter()
    if stands_still:
        daemon.process.send_signal(signal.SIGSTOP)
        eventually(lambda: process_fields(daemon.pid)[0] == "T")
    for number in range(1, 1001):
        daemon.config.write_text(f"log_lines_per_cause: 10000 memory {{ max_pipeline_bytes: {number} }}")
        daemon.process.send_signal(signal.SIGHUP)
    daemon.process.send_signal(signal.SIGCONT)
    eventually(lambda: "memory.max_pipeline_bytes is 1000 bytes" in command("create", spec).err)
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(60) == 0
    log.has("")
    # How many it gets to see while it runs is the kernel's affair.
    taken = log.text.count("took the configuration anew")
    assert taken == 1 if stands_still else 1 <= taken <= 1000


def test_fault_51_stop_under_load(tmp_path, counter):
    daemon = Daemon(tmp_path / "run" / "penstock.sock", "--log-level", "error")
    penstock = Penstock(tmp_path, daemon.socket)
    assert penstock("create", counter(more="stage { repeat {} }")).code == 0
    consumers = [penstock.start("run", tmp_path / "counter.textproto", "--steps", "1000000000", "--name", f"r{i}", "--reconnect", "0",
                                "--files", "counter.tfrecord") for i in range(2)]
    for consumer in consumers:
        consumer.stdout.readline()
    daemon.process.send_signal(signal.SIGHUP)  # without --config: as the end of a session
    assert daemon.process.wait(60) == 0, daemon.process.stderr.read()
    for consumer in consumers:
        out, error = consumer.communicate(timeout=60)
        assert consumer.returncode == 1
        assert "UNAVAILABLE" in error


def test_fault_51_stop_during_the_start(tmp_path):
    for delay_ms in (0, 2, 5, 10, 20):
        process = subprocess.Popen([program("penstockd"), "--socket", tmp_path / "s"], stderr=subprocess.PIPE, text=True)
        time.sleep(delay_ms / 1000)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=60)
        # Before the signal is blocked nothing exists yet; afterwards the stop is a clean one.
        assert process.returncode in (0, -signal.SIGTERM), error
        assert not (tmp_path / "s").exists()


def test_json_lines(configured):
    daemon = configured("log_format: LOG_FORMAT_JSON")
    assert daemon.stop() == 0
    lines = [json.loads(line) for line in daemon.process.stderr.read().splitlines()]
    assert [set(line) for line in lines] == [{"time", "level", "message"}] * len(lines)
    assert any("serves" in line["message"] for line in lines)


@pytest.mark.parametrize("error", ["closed", "a full pipe", "a broken pipe", "a full disk"])
def test_fault_67_nobody_reads_the_log(tmp_path, counter, error):
    """A standard error that is closed, or a pipe or a disk that is full, or a pipe that nobody will read: work goes on, and so does the stop."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 65536)
    except BlockingIOError:
        pass
    os.set_blocking(writing, True)
    if error == "a broken pipe":
        os.close(reading)
    ready, ready_end = os.pipe()
    full = os.open("/dev/full", os.O_WRONLY)  # each write to it is ENOSPC
    socket = tmp_path / "penstock.sock"
    process = subprocess.Popen([program("penstockd"), "--socket", socket, "--ready-fd", str(ready_end)],
                               pass_fds=[ready_end], stderr=full if error == "a full disk" else writing,
                               preexec_fn=(lambda: os.close(2)) if error == "closed" else None)
    os.close(ready_end)
    assert os.read(ready, 1) == b"\n"
    penstock = Penstock(tmp_path, str(socket))
    spec = counter()
    for i in range(30):
        assert penstock("create", spec, "--name", f"p{i}").code == 0
        assert penstock("delete", f"p{i}").code == 0
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    for descriptor in (writing, full) if error == "a broken pipe" else (reading, writing, full):
        os.close(descriptor)
