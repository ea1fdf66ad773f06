"""Fault 35: what a pipeline may take, and what becomes of one that ends daemons; calls that end with their callers."""

import contextlib
import ctypes
import os
import re
import signal

import pytest

from programs import Daemon, Penstock, eventually, process_fields
from test_return import Supervised

penstock = pytest.importorskip("penstock")

GOOD = 'name: "good" workers: 1 stage { range { stop: 1000000000 } } stage { batch { batch_size: 2 } }'
DOUBLING = ('name: "doubling" stage { range { stop: 5 } } stage { map { let: "s0 = as_string(value)" '
            + "".join(f'let: "s{i + 1} = s{i} + s{i}" ' for i in range(60))
            + 'out: "n = string_length(s60)" } } stage { batch { batch_size: 1 } }')


# The names of the daemon's threads that compute for a call.
LOOK_UP, INDEXING = "reading", "tokens"


def spec(folder, text, name):
    (folder / f"{name}.textproto").write_text(text)
    return f"{name}.textproto"


def is_set_aside(command):
    return any(line.split()[1:2] == ["set_aside"] for line in command("list").out.splitlines())


def threads(pid, name):
    """The threads of a process whose names begin so, with the ticks of processor time that each has used."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{thread}/comm") as file:
            if file.read().startswith(name):
                fields = process_fields(f"{pid}/task/{thread}")
                found[int(thread)] = int(fields[11]) + int(fields[12]) if fields else 0
    return found


def worker_threads(pid):
    return sorted(threads(pid, "worker"))


def computing(pid, name):
    """How many threads of that name have used a tenth of a second: they are in the middle of what takes long."""
    return sum(ticks >= 0.1 * os.sysconf("SC_CLK_TCK") for ticks in threads(pid, name).values())


def fault(pid, thread):
    """What a fault in that thread does."""
    assert ctypes.CDLL(None).syscall(234, pid, thread, signal.SIGSEGV) == 0  # tgkill


def test_a_pipeline_that_would_take_all_memory_fails_and_the_others_go_on(tmp_path, daemon):
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", spec(tmp_path, GOOD, "good")).code == 0
    loader = penstock.attach("good", daemon.socket, timeout=30)
    next(loader)
    text = DOUBLING.replace('"doubling" ', '"doubling" max_work_bytes: 67108864 ')
    assert command("create", spec(tmp_path, text, "doubling")).code == 0
    with pytest.raises(penstock.Error, match=r"stage map: .*pipeline doubling takes more memory than the limit: .* > "
                                             r"64\.0 MiB \(max_work_bytes of its spec\)"):
        next(penstock.attach("doubling", daemon.socket, timeout=30))
    for _ in range(5):
        next(loader)
    assert "failed" in command("list").out
    told = r"(\d+ bytes|[\d.]+ [KMG]iB) of at most "
    assert "# memory: computing and keeping may take 64.0 MiB" in command("get", "doubling").out
    for words in (["stats", "good"], ["top", "good", "--count", "1"]):
        assert re.search(told + r"[\d.]+ [GT]iB|" + told + r"[\d.]+ MiB", command(*words).out), words


def test_a_pipeline_under_which_daemons_die_is_set_aside(tmp_path):
    supervised = Supervised(tmp_path)
    try:
        command = Penstock(tmp_path, supervised.socket)
        assert command("create", spec(tmp_path, GOOD, "good")).code == 0
        loader = penstock.attach("good", supervised.socket, timeout=30, reconnect=60)
        next(loader)
        bad = GOOD.replace('"good"', '"bad"').replace("workers: 1", "workers: 3")
        assert command("create", spec(tmp_path, bad, "bad")).code == 0
        for death in range(3):
            victim = penstock.attach("bad", supervised.socket, timeout=60)
            next(victim)
            child = supervised.child
            # All workers of the one that has three: of four, the first thread or the last is the other's.
            eventually(lambda: len(worker_threads(child)) == 4)
            threads = worker_threads(child)
            fault(child, threads[1])
            eventually(lambda: supervised.child not in (None, child) and supervised.listens)
            next(loader)
        eventually(lambda: is_set_aside(command))
        assert [line.split()[1] for line in command("list").out.splitlines() if line.startswith("good")] == ["running"]
        for asked in ("get", "explain"):
            shown = command(asked, "bad")
            assert shown.code == 0, shown
            assert "bad is set aside: 3 daemons died under it" in shown.out, shown
        with pytest.raises(penstock.Error, match="penstock resume bad tries it again"):
            penstock.attach("bad", supervised.socket, timeout=5)
        for _ in range(5):
            next(loader)
        assert command("resume", "bad").code == 0
        eventually(lambda: not is_set_aside(command))
        next(penstock.attach("bad", supervised.socket, timeout=30))
    finally:
        supervised.stop()


def test_one_that_is_set_aside_can_be_deleted(tmp_path):
    supervised = Supervised(tmp_path)
    try:
        command = Penstock(tmp_path, supervised.socket)
        assert command("create", spec(tmp_path, GOOD, "good")).code == 0
        for _ in range(3):
            next(penstock.attach("good", supervised.socket, timeout=60))
            child = supervised.child
            fault(child, worker_threads(child)[0])
            eventually(lambda: supervised.child not in (None, child) and supervised.listens)
        eventually(lambda: is_set_aside(command))
        assert "is set aside" in command("create", "good.textproto").err
        assert command("delete", "good").code == 0
        assert command("create", "good.textproto").code == 0
        next(penstock.attach("good", supervised.socket, timeout=60))
    finally:
        supervised.stop()


def test_a_daemon_that_somebody_kills_sets_nothing_aside(tmp_path):
    supervised = Supervised(tmp_path)
    try:
        command = Penstock(tmp_path, supervised.socket)
        assert command("create", spec(tmp_path, GOOD, "good")).code == 0
        for _ in range(4):
            next(penstock.attach("good", supervised.socket, timeout=60))
            supervised.kill()
            eventually(lambda: supervised.listens)
        next(penstock.attach("good", supervised.socket, timeout=60))
    finally:
        supervised.stop()


def test_look_ups_end_with_their_callers(tmp_path, daemon, counter):
    command = Penstock(tmp_path, daemon.socket)
    counter(more='stage { filter { predicate: "sum(n) >= 0" } } stage { repeat {} }')
    far = str(2**40)
    for words in (["when", "counter.textproto", "--file", "counter.tfrecord", "--offset", "0", "--from-step", far],
                  ["where", "counter.textproto", "--step", str(2**31 - 1), "--row", "1"],
                  ["run", "counter.textproto", "--step", str(2**31 - 1), "--row", "1"]):
        callers = [command.start(*words) for _ in range(3)]
        eventually(lambda: computing(daemon.pid, LOOK_UP) > 0)
        for caller in callers:
            caller.kill()
            caller.communicate()
        eventually(lambda: not threads(daemon.pid, LOOK_UP))


def test_a_pipeline_is_deleted_in_the_middle_of_a_row(tmp_path, daemon):
    command = Penstock(tmp_path, daemon.socket)
    # A thousand sines of sixteen million numbers: a row takes minutes.
    sines = 'let: "x = sin(x)" ' * 1000
    text = ('name: "long" workers: 1 stage { counter {} } stage { map { let: "x = float64(arange(16777216)) + value" '
            f'{sines} out: "m = sum(x)" }} }} stage {{ batch {{ batch_size: 1 }} }}')
    assert command("create", spec(tmp_path, text, "long")).code == 0
    eventually(lambda: computing(daemon.pid, "worker") == 1)
    assert command("delete", "long").code == 0
    eventually(lambda: not worker_threads(daemon.pid))


def test_fewer_workers_are_had_in_the_middle_of_a_row(tmp_path, daemon):
    command = Penstock(tmp_path, daemon.socket)
    sines = 'let: "x = sin(x)" ' * 1000
    text = ('name: "long" workers: 2 stage { counter {} } stage { map { let: "x = float64(arange(16777216)) + value" '
            f'{sines} out: "m = sum(x)" }} }} stage {{ batch {{ batch_size: 1 }} }}')
    assert command("create", spec(tmp_path, text, "long")).code == 0
    eventually(lambda: computing(daemon.pid, "worker") == 2)
    assert command("update", "long", "--workers", "1").code == 0
    assert "workers: 1" in command("get", "long").out
    assert command("stats", "long").code == 0
    penstock.attach("long", daemon.socket, timeout=30).close()
    assert command("update", "long", "--workers", "2").code == 0
    assert command("delete", "long").code == 0
    eventually(lambda: not worker_threads(daemon.pid))


def index_spec(folder, lets, out, more=""):
    (folder / "a.jsonl").write_text('{"n": [1, 2, 3]}\n')
    return spec(folder, f"""name: "packed" {more}
        stage {{ json_lines {{ files: "a.jsonl" }} }}
        stage {{ decode_json {{ feature {{ name: "n" dtype: "int64" shape: -1 }} }} }}
        stage {{ map {{ {lets} out: "{out}" }} }}
        stage {{ pack {{ sequence_length: 4 tokens: "n" }} }}
        stage {{ batch {{ batch_size: 1 }} }}""", "packed")


def test_an_index_of_tokens_is_made_within_the_budget(tmp_path, daemon):
    command = Penstock(tmp_path, daemon.socket)
    lets = 'let: "s0 = as_string(sum(n) * 0)" ' + "".join(f'let: "s{i + 1} = s{i} + s{i}" ' for i in range(27))
    packed = index_spec(tmp_path, lets, "n = n + string_length(s27)", "max_work_bytes: 67108864")
    result = command("index", "--tokens", packed)
    assert result.code == 1, result
    assert re.search(r"stage map: .*pipeline packed takes more memory than the limit: .* > 64\.0 MiB "
                     r"\(max_work_bytes of its spec\)", result.err), result
    assert daemon.process.poll() is None


def test_an_index_of_tokens_is_not_made_for_a_caller_who_has_gone(tmp_path, daemon):
    command = Penstock(tmp_path, daemon.socket)
    lets = 'let: "x = float64(arange(16777216)) + sum(n)" ' + 'let: "x = sin(x)" ' * 1000
    caller = command.start("index", "--tokens", index_spec(tmp_path, lets, "n = n + int64(sum(x))"))
    eventually(lambda: computing(daemon.pid, INDEXING) > 0)
    caller.kill()
    caller.communicate()
    eventually(lambda: not threads(daemon.pid, INDEXING))


@pytest.mark.parametrize("stage, count, why", [
    ("stage{shuffle{buffer_size:2 seed:1}}", 7000, "too many stages: limit 1024"),
    ("stage{enumerate{}}", 2000, "too many stages: limit 1024"),
    ("stage{enumerate{}}", 1000, "parts in parts: limit 64 deep"),
])
def test_specs_of_too_many_stages_are_refused(tmp_path, penstock_command, stage, count, why):
    many = spec(tmp_path, 'name: "x" stage{range{stop:3}}' + stage * count, "x")
    result = penstock_command("validate", many)
    assert result.code != 0, result
    assert why in result.err
