"""penstockd from its start to its end."""

import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
import subprocess

import pytest
import tfrecord_files

from confined import task_group
from programs import Daemon, Penstock, children, eventually, is_alive, process_fields, program


def run_daemon(*words):
    done = subprocess.run([program("penstockd"), *map(str, words)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_fault_51_a_signal_stops_it_cleanly(tmp_path, number, counter):
    daemon = Daemon(tmp_path / "run" / "penstock.sock", keeps_state=False)
    penstock = Penstock(tmp_path, daemon.socket)
    assert penstock("create", counter(more="stage { repeat {} }")).code == 0
    assert daemon.stop(number) == 0
    assert list((tmp_path / "run").iterdir()) == []


def test_fault_51_a_stop_does_not_wait_for_a_profile(daemon, remote, counter):
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    profile = None

    def is_under_way():
        nonlocal profile
        if profile is None or profile.poll() is not None:
            profile = remote.start("profile", "counter", "--seconds", 40, "--out", "profile.json")
        return "is being made already" in remote("profile", "counter", "--seconds", 0.001, "--out", "other.json").err

    eventually(is_under_way)
    assert daemon.stop() == 0
    profile.communicate(timeout=60)


def test_fault_51_a_stop_does_not_wait_for_a_drain(daemon, remote, counter):
    penstock = pytest.importorskip("penstock")
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    with penstock.attach("counter", socket=daemon.socket):
        drain = remote.start("drain", "counter", "--timeout", 300)
        eventually(lambda: "paused" in remote("list").out)
        assert daemon.stop() == 0
    _, error = drain.communicate(timeout=60)
    assert drain.returncode == 1 and "penstockd" in error


def test_modes(daemon, tmp_path):
    assert stat.S_IMODE(os.stat(daemon.socket).st_mode) == 0o660
    assert stat.S_IMODE(os.stat(tmp_path / "run").st_mode) == 0o750


def test_fault_47_a_second_daemon_is_refused_and_the_first_lives_on(daemon, remote):
    code, _, error = run_daemon("--socket", daemon.socket)
    assert code == 1
    assert f"another penstockd (process {daemon.pid}) serves {daemon.socket}" in error
    assert remote("list").code == 0


def test_fault_47_a_daemon_whose_state_another_one_has_never_says_ready(tmp_path):
    first = Daemon(tmp_path / "run" / "first.sock", state=tmp_path / "state")
    second = Daemon(tmp_path / "run" / "second.sock", state=tmp_path / "state")
    try:
        assert first.is_ready
        assert not second.is_ready
        assert second.process.wait(60) == 1
        assert str(tmp_path / "state") in second.process.stderr.read()
        assert Penstock(tmp_path, first.socket)("list").code == 0
    finally:
        second.stop()
        assert first.stop() == 0


def test_fault_50_a_socket_left_by_a_killed_daemon_is_replaced(tmp_path):
    first = Daemon(tmp_path / "penstock.sock")
    first.kill()
    assert (tmp_path / "penstock.sock").exists()
    second = Daemon(tmp_path / "penstock.sock")
    assert second.is_ready
    assert Penstock(tmp_path, second.socket)("list").code == 0
    assert second.stop() == 0


@pytest.mark.parametrize("gone", ["socket", "socket and lock", "folder"])
def test_fault_50_what_a_cleaner_has_removed_is_there_again(daemon, remote, tmp_path, counter, gone):
    assert remote("create", counter()).code == 0
    os.unlink(daemon.socket)
    if gone != "socket":
        os.unlink(f"{daemon.socket}.lock")
    if gone == "folder":
        # With the state folder in it, which is kept open.
        shutil.rmtree(tmp_path / "run")
    eventually(lambda: remote("list").code == 0)
    # What is in it too: the next daemon finds the pipeline.
    eventually(lambda: any(path.name.startswith("counter") for path in (tmp_path / "run" / "penstock.sock.state").glob("*")))
    assert "counter" in remote("list").out
    assert stat.S_IMODE(os.stat(daemon.socket).st_mode) == 0o660
    code, _, error = run_daemon("--socket", daemon.socket)
    assert code == 1 and f"another penstockd (process {daemon.pid}) serves" in error
    assert daemon.stop() == 0
    assert not os.path.exists(daemon.socket) and not os.path.exists(f"{daemon.socket}.lock")


def test_fault_50_the_end_of_a_daemon_takes_nothing_from_another_in_its_place(tmp_path):
    first = Daemon(tmp_path / "penstock.sock", keeps_state=False)
    os.kill(first.pid, signal.SIGSTOP)
    os.unlink(first.socket)
    os.unlink(f"{first.socket}.lock")
    second = Daemon(tmp_path / "penstock.sock", "--log-level", "error", keeps_state=False)
    os.kill(first.pid, signal.SIGCONT)
    assert first.stop() == 0
    assert os.path.exists(f"{second.socket}.lock")
    assert Penstock(tmp_path, second.socket)("list").code == 0
    assert second.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_without_a_meaning_ends_nothing(daemon, remote, number):
    daemon.process.send_signal(number)
    assert remote("list").code == 0 and is_alive(daemon.pid)
    assert daemon.stop() == 0
    assert f"ignored {signal.strsignal(number)} of process {os.getpid()}" in daemon.process.stderr.read()


def test_fault_50_a_file_that_is_no_socket_is_not_replaced(tmp_path):
    path = tmp_path / "precious"
    path.write_text("data")
    code, _, error = run_daemon("--socket", path)
    assert code == 1
    assert "exists and is not a socket" in error
    assert path.read_text() == "data"


def plant_link(victim, place):
    place.symlink_to(victim)


def plant_other_name(victim, place):
    place.hardlink_to(victim)


def plant_fifo(_, place):
    os.mkfifo(place)


def plant_file_of_another(_, place):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    place.write_text("1\n")
    os.chown(place, 54321, 54321)


@pytest.mark.parametrize("plant", [plant_link, plant_other_name, plant_fifo, plant_file_of_another])
@pytest.mark.parametrize("name", ["penstock.sock", "penstock.sock.lock"])
def test_fault_50_what_others_laid_in_its_place_is_refused(tmp_path, name, plant):
    victim = tmp_path / "precious"
    victim.write_text("data")
    plant(victim, tmp_path / name)
    before = os.lstat(tmp_path / name)
    code, _, error = run_daemon("--socket", tmp_path / "penstock.sock")
    assert code == 1
    assert str(tmp_path / name) in error
    assert victim.read_text() == "data"
    assert os.path.samestat(os.lstat(tmp_path / name), before)


def test_fault_54_config_is_checked(tmp_path):
    config = tmp_path / "penstockd.textproto"
    config.write_text("worker_defaults {\n  wokers: 3\n}\n")
    code, _, error = run_daemon("--config", config, "--check-config")
    assert code == 78
    assert f'{config}:2:9: unknown field "wokers" in WorkerDefaults, did you mean "workers"?' in error
    config.write_text(f'socket: "{tmp_path}/s"\nworker_defaults {{ workers: 3 }}')
    code, out, _ = run_daemon("--config", config, "--check-config")
    assert code == 0
    assert "workers: 3" in out
    assert not (tmp_path / "s").exists()
    assert run_daemon("--config", tmp_path / "none")[0] == 78
    assert run_daemon("--no-such-flag")[0] == 2
    assert run_daemon("--socket", "/" + "x" * 200)[0] == 78


def test_its_threads_have_names(daemon, remote, counter):
    assert remote("create", counter(more="stage { repeat {} }"), "--workers", "2").code == 0
    names = {thread.joinpath("comm").read_text().strip() for thread in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()}
    assert {"worker 1 of 2", "worker 2 of 2", "control plane"} <= names, names


def test_the_owners_end_stops_it(tmp_path):
    reading, writing = os.pipe()
    process = subprocess.Popen([program("penstockd"), "--socket", tmp_path / "run" / "s", "--exit-with-parent", str(reading)],
                               pass_fds=[reading], stderr=subprocess.DEVNULL)
    os.close(reading)
    eventually(lambda: (tmp_path / "run" / "s").exists())
    assert process.poll() is None
    os.close(writing)
    assert process.wait(60) == 0
    assert not (tmp_path / "run").exists()


def test_a_private_daemon_counts_no_requests(tmp_path):
    config = tmp_path / "penstockd.textproto"
    config.write_text("connection_limits { max_requests_per_s: 7 }")
    for options, limit in (((), 2000), (("--exit-with-parent", "0"), 1000000), (("--exit-with-parent", "0", "--config", config), 7)):
        code, out, _ = run_daemon(*options, "--check-config")
        assert code == 0 and f"max_requests_per_s: {limit}" in out


def test_fault_60_without_descriptors_it_refuses_and_recovers(tmp_path, counter):
    def few_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))

    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error", limits=few_descriptors)
    visitors = []
    for _ in range(100):
        visitor = socket.socket(socket.AF_UNIX)
        visitor.connect(daemon.socket)
        visitors.append(visitor)
    # Those for whom there is no descriptor are hung up on at once, rather than left waiting.
    visitors[-1].settimeout(60)
    assert visitors[-1].recv(1) == b""
    before = cpu_ticks(daemon.pid)
    with pytest.raises(TimeoutError):
        visitors[0].settimeout(0.3)
        visitors[0].recv(1)
    assert cpu_ticks(daemon.pid) - before <= 10, "the daemon spins"
    for visitor in visitors:
        visitor.close()
    penstock = Penstock(tmp_path, daemon.socket)
    eventually(lambda: penstock("list").code == 0)
    assert daemon.stop() == 0


@pytest.mark.parametrize("limit", [12, 31])
def test_fault_60_too_few_descriptors_to_serve_are_an_error(tmp_path, limit):
    def few_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error", keeps_state=False, limits=few_descriptors)
    assert daemon.process.wait(60) == 1
    error = daemon.process.stderr.read()
    assert f"too few descriptors to serve anybody: the limit is {limit}, expected at least 32" in error, error


@pytest.mark.parametrize("limit, shards", [(36, 3000), (32, 10)])
@pytest.mark.parametrize("order", ["", "stage { shuffle { global: true seed: 1 } }"], ids=["in order", "shuffled"])
def test_fault_60_a_few_descriptors_are_enough_for_many_shards(tmp_path, limit, shards, order):
    """As docs/operations.md says."""
    penstock = pytest.importorskip("penstock")
    for shard in range(shards):
        tfrecord_files.write(tmp_path / f"{shard:04}.tfrecord", [tfrecord_files.example(n=shard)])
    (tmp_path / "p.textproto").write_text(
        f'name: "p" stage {{ tfrecord {{ files: "*.tfrecord" }} }} {order} '
        'stage { parse_example { feature { key: "n" int64 {} } } } stage { batch { batch_size: 100 } }'
    )
    daemon = Daemon(tmp_path / "penstock.sock", limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    try:
        assert daemon.is_ready
        created = Penstock(tmp_path, daemon.socket)("create", "p.textproto")
        assert created.code == 0, created
        numbers = [int(n) for batch in penstock.attach("p", daemon.socket, timeout=60) for n in batch["n"]]
        assert sorted(numbers) == list(range(shards))
    finally:
        assert daemon.stop() == 0, daemon.process.stderr.read()


def test_fault_60_it_takes_the_descriptors_that_it_may_have(tmp_path):
    def hard_limit_alone():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 200)))

    daemon = Daemon(tmp_path / "penstock.sock", limits=hard_limit_alone)
    assert Penstock(tmp_path, daemon.socket)("list").code == 0
    assert resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)[0] == 200
    assert daemon.stop() == 0


def test_fault_61_too_few_threads_to_serve_are_an_error(tmp_path):
    refused = 0
    for limit in range(1, 24):
        with task_group(limit) as group:
            if group is None:
                pytest.skip("no control group can be made here")
            daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error", keeps_state=False,
                            limits=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))  # fmt: skip
            # It has begun when it answers, if only that it has no thread for this.
            Penstock(tmp_path, daemon.socket)("list")
            code, error = daemon.stop(), daemon.process.stderr.read()
            assert code == 0 or (code == 1 and "penstockd: the system gives no more threads" in error and "pids.max" in error), (limit, code, error)
            refused += code
    assert refused > 8


def cpu_ticks(pid):
    fields = process_fields(pid)
    return int(fields[11]) + int(fields[12])


def test_kill_of_the_command_leaves_no_daemon(penstock_command, counter, tmp_path):
    spec = counter(more="stage { repeat {} }")
    process = penstock_command.start("run", spec, "--steps", "1000000000")
    process.stdout.readline()
    [private_daemon] = children(process.pid)
    process.kill()
    process.wait(60)
    process.stdout.close()
    process.stderr.close()
    eventually(lambda: not is_alive(private_daemon))
    eventually(lambda: list((tmp_path / "tmp").iterdir()) == [])
