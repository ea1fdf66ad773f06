"""Pipelines that are changed while they run: no batch is lost or doubled, and a history makes the same bytes again."""

import fcntl
import json
import re
import threading

import pytest

from programs import Daemon, Penstock, eventually
from tfrecord_files import example, framed

MIXTURE = """
name: "p"
stage { name: "mix" sample_from_datasets { seed: 3 weight: 0.5 weight: 0.5
  input { stage { range { stop: 1000000 } } stage { shuffle { buffer_size: 100 seed: 1 } } }
  input { stage { range { start: 1000000 stop: 2000000 } } } } }
stage { map { constant { name: "K" value: 2 } out: "x = value * K" } }
stage { batch { batch_size: 64 } }
"""


@pytest.fixture
def mixture(tmp_path):
    path = tmp_path / "p.textproto"
    path.write_text(MIXTURE)
    return path


class Running:
    """`penstock run`, which stands still until somebody reads its lines: its pipe is full after some of them."""

    def __init__(self, remote, spec, steps):
        self.remote = remote
        self.process = remote.start("run", spec, "--steps", str(steps), "--name", "p")
        fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        self.lines = [self.process.stdout.readline()]
        eventually(self.stands_still)

    def stands_still(self):
        looks = [json.loads(ok(self.remote("top", "p", "--count", "1", "--json"))) for _ in range(2)]
        consumers = [look["consumers"][0] for look in looks if look["consumers"]]
        return len(consumers) == 2 and consumers[0]["position"] == consumers[1]["position"] != looks[0]["steps"]

    def read(self, lines):
        self.lines += [self.process.stdout.readline() for _ in range(lines)]

    def rest(self):
        """All lines from the first on, once the run has ended."""
        out = self.process.stdout.read()
        assert self.process.wait(60) == 0, self.process.stderr.read()
        return "".join(self.lines) + out


def steps_of(text):
    return [int(re.match(r"step (\d+)", line)[1]) for line in text.splitlines()]


def ok(result):
    assert result.code == 0, result
    return result.out


def step_in(text):
    return int(re.search(r"from step (\d+) on", text)[1])


def first_difference(a, b):
    for step, (one, other) in enumerate(zip(a.splitlines(), b.splitlines())):
        if one != other:
            return step
    return None


def test_a_steered_run_replays_to_the_same_bytes(remote, mixture, tmp_path):
    plain = ok(remote("run", mixture, "--steps", "4000", "--name", "plain"))
    running = Running(remote, mixture, 4000)
    changes = []
    for words in (["--set", "mix.weight=0.9,0.1"], ["--set", "map.K=3"], ["--set", "batch.batch_size=16"], ["--skip", "5"], ["--skip", "2"],
                  ["--set", "batch.batch_size=48", "--set", "K=4", "--at-step", "3000"], ["--skip", "7", "--at-step", "3500"]):
        changes.append(step_in(ok(remote("update", "p", *words))))
        if words != ["--skip", "5"]:  # two changes at one step
            running.read(60)
    changes.append(step_in(ok(remote("seek", "p", "--beginning", "--at-step", "3600"))))
    assert changes == sorted(changes) and changes[-3:] == [3000, 3500, 3600]
    history = tmp_path / "history.textproto"
    history.write_text(ok(remote("history", "p")))
    steered = running.rest()
    assert steps_of(steered) == list(range(4000))
    assert first_difference(steered, plain) == changes[0]

    again = ok(remote("run", mixture, "--steps", "4000", "--name", "again", "--history", history, "--workers", "3"))
    assert again == steered
    # From a cursor in the middle of it, and right in front of a change.
    for behind in (1500, 3000, 3600):
        cursor = tmp_path / "cursor"
        ok(remote("run", mixture, "--steps", behind, "--name", "head", "--history", history, "--cursor-out", cursor))
        tail = ok(remote("run", mixture, "--steps", "300", "--name", "tail", "--history", history, "--resume", cursor))
        assert tail.splitlines() == steered.splitlines()[behind:behind + 300]
    # Another history makes something else of the cursor's steps.
    refused = remote("run", mixture, "--steps", "1", "--name", "other", "--resume", cursor)
    assert refused.code == 1 and "cursor belongs to another stream" in refused.err


def test_what_has_no_effect_on_the_bytes(remote, mixture):
    plain = ok(remote("run", mixture, "--steps", "4000", "--name", "plain"))
    running = Running(remote, mixture, 4000)
    for words in (("--workers", "4"), ("--slots", "9"), ("--workers", "1"), ("--slots", "2"), ("--workers", "3", "--slots", "5")):
        ok(remote("update", "p", *words))
    spec = ok(remote("get", "p"))
    assert "slots: 5" in spec and "workers: 3" in spec
    stats = json.loads(ok(remote("top", "p", "--count", "1", "--json")))
    assert (stats["workers"], stats["slots"]) == (3, 5)
    assert running.rest() == plain


def test_pause_resume_and_drain(remote, mixture, tmp_path):
    plain = ok(remote("run", mixture, "--steps", "3000", "--name", "plain"))
    running = Running(remote, mixture, 3000)
    assert ok(remote("pause", "p")) == "paused p\n"
    ok(remote("pause", "p"))
    assert "paused" in ok(remote("list"))
    late = remote("drain", "p", "--timeout", "0.05")
    assert late.code == 1 and "DEADLINE_EXCEEDED" in late.err and "stands at step" in late.err
    # The trainer goes on as far as there are batches.
    reader = threading.Thread(target=lambda: running.lines.append(running.process.stdout.read()))
    reader.start()
    cursor = tmp_path / "cursor"
    drained = ok(remote("drain", "p", "--cursor-out", cursor))
    step = int(re.search(r"step (\d+) is next", drained)[1])
    tail = ok(remote("run", mixture, "--steps", "50", "--name", "tail", "--resume", cursor))
    assert tail.splitlines() == plain.splitlines()[step:step + 50]
    assert "paused" in ok(remote("explain", "p"))
    assert ok(remote("resume", "p")) == "resumed p\n"
    reader.join()
    running.process.wait(60)
    assert "".join(running.lines) == plain


def test_a_pipeline_without_consumers_is_drained_at_once(remote, mixture, tmp_path):
    ok(remote("create", mixture))
    assert "step 0 is next" in ok(remote("drain", "p"))
    ok(remote("delete", "p"))


def test_seek_goes_back_to_a_cursor(remote, mixture, tmp_path):
    cursor = tmp_path / "cursor"
    plain = ok(remote("run", mixture, "--steps", "1000", "--name", "plain"))
    ok(remote("run", mixture, "--steps", "100", "--name", "head", "--cursor-out", cursor))
    running = Running(remote, mixture, 4000)
    at = step_in(ok(remote("seek", "p", "--cursor", cursor)))
    lines = running.rest().splitlines()
    assert steps_of("\n".join(lines)) == list(range(4000))
    without_step = [re.sub(r"^step \d+", "", line) for line in lines]
    expected = [re.sub(r"^step \d+", "", line) for line in plain.splitlines()]
    assert without_step[at:at + 900] == expected[100:1000]


@pytest.mark.parametrize("words, complaint", [
    (["--set", "tfrecord.files=other"], "stage tfrecord: tfrecord decides the order"),
    (["--set", "shuffle.buffer_size=7"], "stage shuffle: shuffle decides the order"),
    (["--set", "batch.batch_size=9"], "a batch_size larger than that of the beginning, 4"),
    (["--set", "K=x"], "constant override"),
    (["--set", "batch.batch_size=2,3"], "not a value of batch.batch_size: 2,3 (1:"),
    (["--set", "batch.batch_size=2 drop_remainder: true"], "not a value of batch.batch_size: 2 drop_remainder: true (it sets drop_remainder too)"),
    (["--set", "shuffle.buffer_size=x"], "not a value of shuffle.buffer_size: x (1:"),
    (["--skip", "1", "--at-step", "1"], "is being made"),
    (["--skip", "1", "--at-step", 2**62 + 1], f"step: expected at most {2**62}, found {2**62 + 1}"),
    (["--slots", "3", "--etag", "1-00000000"], "the pipeline was changed meanwhile"),
    (["--workers", "1000"], "workers: expected 1 to"),
    ([], "the update changes nothing"),
])
def test_what_cannot_be_changed_is_refused_with_its_op(remote, counter, tmp_path, words, complaint):
    spec = counter(records=200)
    spec.write_text(spec.read_text().replace("stage { parse", 'stage { shuffle { buffer_size: 8 seed: 1 } }\nstage { parse', 1))
    ok(remote("create", spec))
    eventually(lambda: json.loads(ok(remote("top", "counter", "--count", "1", "--json")))["steps"] != "0")
    before = ok(remote("get", "counter")), ok(remote("history", "counter"))
    words = [str(word).replace("=other", f"='{tmp_path}/counter.tfrecord','{tmp_path}/counter.tfrecord'") for word in words]
    refused = remote("update", "counter", *words)
    assert refused.code == 1 and complaint in refused.err and len(refused.err.splitlines()) == 1, refused
    assert (ok(remote("get", "counter")), ok(remote("history", "counter"))) == before


def test_a_text_is_set_as_it_is(remote, tmp_path):
    spec = tmp_path / "p.textproto"
    spec.write_text('name: "p"\nstage { range { stop: 64 } }\nstage { map { out: "x = value" } }\nstage { batch { batch_size: 32 } }\nstage { repeat {} }\n')
    running = Running(remote, spec, 400)
    at = step_in(ok(remote("update", "p", "--set", "map.out=x = clip(value, 3, 5)")))
    other = tmp_path / "other.textproto"
    other.write_text(spec.read_text().replace("x = value", "x = clip(value, 3, 5)"))
    lines = running.rest().splitlines()
    assert lines[at:] == ok(remote("run", other, "--steps", "400", "--name", "other")).splitlines()[at:] != lines[:-at]


def test_a_mixture_behind_which_elements_wait_keeps_its_weights(remote, tmp_path):
    spec = tmp_path / "p.textproto"
    spec.write_text(MIXTURE.replace("stage { map", "stage { shuffle { buffer_size: 10 seed: 2 } }\nstage { map"))
    ok(remote("create", spec))
    refused = remote("update", "p", "--set", "mix.weight=0.9,0.1")
    assert "sample_from_datasets cannot be changed while the pipeline runs: shuffle (stage shuffle_2) behind it" in refused.err
    # What computes rows may still become another one.
    ok(remote("update", "p", "--set", "K=5"))


def test_a_killed_daemon_brings_the_history_back(tmp_path, mixture):
    first = Daemon(tmp_path / "penstock.sock")
    remote = Penstock(tmp_path, first.socket)
    running = Running(remote, mixture, 4000)
    ok(remote("update", "p", "--set", "mix.weight=0.9,0.1", "--set", "K=3"))
    ok(remote("update", "p", "--workers", "3"))
    ok(remote("update", "p", "--set", "batch.batch_size=16", "--at-step", "3500"))
    history = tmp_path / "history.textproto"
    history.write_text(ok(remote("history", "p")))
    first.kill()
    second = Daemon(tmp_path / "penstock.sock")
    try:
        eventually(lambda: remote("history", "p").code == 0)
        assert ok(remote("history", "p")) == history.read_text()
        assert "workers: 3" in ok(remote("get", "p"))
        steered = running.rest()
        assert steps_of(steered) == list(range(4000))
        assert ok(remote("run", mixture, "--steps", "4000", "--name", "again", "--history", history)) == steered
    finally:
        second.stop()


def test_all_win_who_name_no_etag(remote, tmp_path):
    spec = tmp_path / "p.textproto"
    spec.write_text(MIXTURE)
    assert remote("create", spec).code == 0
    rivals = [remote.start("update", "p", "--workers", str(1 + rival % 2), "--slots", str(3 + rival)) for rival in range(8)]
    results = [(rival.communicate(timeout=60)[1], rival.returncode) for rival in rivals]
    assert all(code == 0 for _, code in results), results


def test_fault_58_one_winner_by_etag_while_consumers_come_and_go(remote, tmp_path):
    """Passes end, consumers come and go, and three want to change the same thing: one does, and nothing is lost."""
    penstock = pytest.importorskip("penstock")
    spec = tmp_path / "p.textproto"
    spec.write_text(MIXTURE.replace("stop: 1000000", "stop: 3000").replace("stop: 2000000", "stop: 1003000")
                    + "stage { repeat {} }")
    running = Running(remote, spec, 1000000000)
    reader = threading.Thread(target=lambda: running.lines.extend(running.process.stdout))
    over = threading.Event()

    def come_and_go():
        while not over.is_set():
            with penstock.attach("p", socket=remote.socket, timeout=30) as loader:
                for _ in zip(range(20), loader):
                    pass

    threads = [reader, *(threading.Thread(target=come_and_go) for _ in range(2))]
    for thread in threads:
        thread.start()
    turns = 6
    try:
        for turn in range(turns):
            etag = re.search(r"etag (\S+):", ok(remote("history", "p")))[1]
            rivals = [remote.start("update", "p", "--etag", etag, "--set", f"K={3 + turn % 2}", "--skip", "1", "--workers", str(1 + rival))
                      for rival in range(3)]
            results = [(rival.communicate(timeout=60)[1], rival.returncode) for rival in rivals]
            assert sorted(code for _, code in results) == [0, 1, 1], results
            assert all("ABORTED" in error for error, code in results if code)
        text = ok(remote("history", "p"))
        last = max(int(step) for step in re.findall(r"^  step: (\d+)", text, re.MULTILINE))
        eventually(lambda: len(running.lines) > last + 10)
    finally:
        over.set()
        for thread in threads[1:]:
            thread.join(60)
        running.process.kill()
        reader.join(60)
        running.process.communicate()
    assert text.count("change {") == turns
    history = tmp_path / "history.textproto"
    history.write_text(text)
    again = ok(remote("run", spec, "--steps", last + 10, "--name", "again", "--history", history))
    assert again == "".join(running.lines[:last + 10])


def test_consumers_are_listed_and_sent_away(remote, mixture):
    penstock = pytest.importorskip("penstock")
    ok(remote("create", mixture))
    loader = penstock.attach("p", socket=remote.socket, timeout=30, group="g", consumer="first")
    batches = iter(loader)
    next(batches)
    listed = ok(remote("consumers", "p")).splitlines()
    assert len(listed) == 2 and " g " in listed[1] and " first " in listed[1]
    number = listed[1].split()[0]
    ok(remote("slow", "p", "g", "detach"))
    assert "no consumer 77" in remote("detach", "p", "77").err
    ok(remote("detach", "p", number))
    with pytest.raises(Exception, match="sent away by the control plane"):
        for _ in range(100):
            next(batches)


def test_explain_and_profile(remote, mixture, tmp_path):
    ok(remote("create", mixture))
    eventually(lambda: "nobody reads" in ok(remote("explain", "p")))
    consumer = remote.start("run", mixture, "--steps", "1000000000", "--name", "busy", "--out", tmp_path / "out")
    try:
        eventually(lambda: "busy" in ok(remote("list")))
        trace = tmp_path / "trace.json"
        ok(remote("profile", "busy", "--seconds", "0.3", "--out", trace))
        events = json.loads(trace.read_text())["traceEvents"]
        assert {"process_name", "thread_name"} <= {event["name"] for event in events}
        spans = [event for event in events if event["ph"] == "X"]
        assert all(event["dur"] >= 0 and 0 <= event["ts"] < 60e6 for event in spans)
        names = {re.sub(r"\d+", "N", event["name"]) for event in spans}
        assert {"block of step N", "map", "front"} <= names
    finally:
        consumer.kill()
        consumer.communicate()


def test_the_log_level_is_changed_while_it_runs(daemon, remote, mixture):
    ok(remote("log-level", "error"))
    ok(remote("create", mixture))
    assert remote("log-level", "loud").code == 2
    daemon.stop()
    assert "pipeline p created" not in daemon.process.stderr.read()


# In the order of the file, whose cursor is gone to by reading or by its index, and where all of a pass is known beforehand.
@pytest.mark.parametrize("records", [500, 6000])
@pytest.mark.parametrize("order", ["", "stage { shuffle { global: true seed: 1 } }"], ids=["in order", "shuffled"])
def test_what_a_pass_has_skipped_is_told_once_whatever_changes(remote, tmp_path, records, order):
    penstock = pytest.importorskip("penstock")
    parts = [framed(example(n=n)) for n in range(records)]
    offset = sum(map(len, parts[:2]))
    parts[2] = parts[2][:-1] + bytes([parts[2][-1] ^ 1])
    (tmp_path / "a.tfrecord").write_bytes(b"".join(parts))
    (tmp_path / "p.textproto").write_text(f"""
        name: "p" stage {{ tfrecord {{ files: "a.tfrecord" damage {{ on_damage: SKIP_RECORD }} }} }} {order}
        stage {{ parse_example {{ feature {{ key: "n" int64 {{}} }} }} }} stage {{ map {{ constant {{ name: "K" value: 2 }} out: "x = n * K" }} }}
        stage {{ batch {{ batch_size: {records // 50} }} }} stage {{ repeat {{ count: 3 }} }}""")
    ok(remote("create", tmp_path / "p.textproto"))
    loader = penstock.attach("p", socket=remote.socket, timeout=60)
    taken = 0
    for factor, steps in [(3, 10), (4, 30), (5, 200)]:
        for _, batch in zip(range(steps), loader):
            taken += len(batch["x"])
        if factor < 5:
            ok(remote("update", "p", "--set", f"K={factor}"))
    assert taken == 3 * (records - 1)
    listed = remote("skipped", "p").out.splitlines()
    assert len(listed) == 3 and all(f"offset {offset}," in line for line in listed), listed
    assert int(json.loads(ok(remote("top", "p", "--count", "1", "--json")))["skipped"]) == 3


def counted(stats):
    """All that is counted or timed, by its name."""
    stages = {f"{stage['name']}.{name}": int(value) for stage in stats["stages"] for name, value in stage.items()
              if name in ("elements", "busy_ns", "read_bytes", "read_ns")}
    whole = {name: int(value) for name, value in stats.items()
             if name in ("rows", "records", "bytes_read", "slot_wait_ns")}
    return {**stages, **whole}


def test_what_is_counted_is_counted_on_behind_a_change(remote, tmp_path):
    penstock = pytest.importorskip("penstock")
    (tmp_path / "a.tfrecord").write_bytes(b"".join(framed(example(n=1)) for _ in range(20000)))
    (tmp_path / "p.textproto").write_text("""
        name: "p" stage { tfrecord { files: "a.tfrecord" } }
        stage { parse_example { feature { key: "n" int64 {} } } } stage { map { constant { name: "K" value: 2 } out: "x = n * K" } }
        stage { batch { batch_size: 10 } }""")
    ok(remote("create", tmp_path / "p.textproto"))
    loader = penstock.attach("p", socket=remote.socket, timeout=60)
    for _, _ in zip(range(1000), loader):
        pass
    before = counted(json.loads(ok(remote("top", "p", "--count", "1", "--json"))))
    assert len(before) > 10 and before["rows"] >= 9990, before
    ok(remote("update", "p", "--set", "K=3"))
    while next(loader)["x"][0] != 3:
        pass
    behind = counted(json.loads(ok(remote("top", "p", "--count", "1", "--json"))))
    less = {name: (value, behind.get(name)) for name, value in before.items() if behind.get(name, 0) < value}
    assert not less
