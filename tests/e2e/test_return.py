"""Death and return: a daemon that is killed comes back with its pipelines, and trainers go on with the next batch."""

import os
import signal
import socket
import threading
import time

import pytest

from programs import Daemon, Penstock, children, eventually

penstock = pytest.importorskip("penstock")

class Supervised:
    """penstockd --supervise; `kill` takes the daemon, not its supervisor."""

    def __init__(self, folder, *options, limits=None):
        self.daemon = Daemon(folder / "penstock.sock", "--supervise", "--log-level", "error", *options, limits=limits)
        self.socket = self.daemon.socket

    @property
    def child(self):
        found = children(self.daemon.pid)
        return found[0] if found else None

    def kill(self):
        """Returns when the next one is there."""
        before = self.child
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self.child not in (None, before))

    @property
    def listens(self):
        """Whether a newcomer gets in: not yet where the next one has only begun."""
        with socket.socket(socket.AF_UNIX) as visitor:
            return visitor.connect_ex(self.socket) == 0

    def stop(self):
        return self.daemon.stop()


@pytest.fixture
def supervised(tmp_path):
    one = Supervised(tmp_path)
    assert one.daemon.is_ready
    yield one
    one.stop()


@pytest.fixture
def command(tmp_path, supervised):
    return Penstock(tmp_path, supervised.socket)


def rows(batch):
    return [int(n) for n in batch["n"]]


def expected(step, records=42, batch=4):
    """The rows of a step of the endless counter: a short batch ends each pass."""
    steps = -(-records // batch)
    first = step % steps * batch
    return list(range(first, min(first + batch, records)))


def attach(socket, **options):
    return penstock.attach("counter", socket=socket, timeout=60, **options)


def test_fault_48_a_killed_daemon_is_a_pause(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(supervised.socket)
    for step in range(20):
        assert rows(next(loader)) == expected(step)
    for step in range(20, 60):
        if step % 10 == 0:
            supervised.kill()
        batch = next(loader)
        assert (loader.step, rows(batch)) == (step, expected(step))
    assert loader.stats()["reconnects"] == 4


def test_fault_48_a_supervisor_notices_a_death_though_it_was_started_to_ignore_its_childrens(tmp_path):
    one = Supervised(tmp_path, limits=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    one.kill()
    assert one.stop() == 0


def test_fault_23_a_pipeline_whose_files_are_away_at_a_restart_comes_back_with_them(supervised, command, counter, tmp_path):
    spec = counter(more="stage { repeat {} }")
    assert command("create", spec).code == 0
    shards = [path for path in tmp_path.iterdir() if path.suffix == ".tfrecord"]
    assert shards
    loader = attach(supervised.socket)
    assert rows(next(loader)) == expected(0)
    for shard in shards:
        shard.rename(shard.with_suffix(".away"))
    supervised.kill()
    eventually(lambda: "returning" in command("list").out and "No such file" in command("list").out)
    stats = command("stats", "counter")
    assert stats.code == 1 and "pipeline counter has not come back yet" in stats.err, stats
    for shard in shards:
        shard.with_suffix(".away").rename(shard)
    # What was ready in the ring of the daemon that died is gone with it; nothing of the stream is.
    for step in range(1, 30):
        assert rows(next(loader)) == expected(step)
    assert "running" in command("list").out


def test_a_pipeline_whose_files_are_away_at_a_restart_can_be_deleted(supervised, command, counter, tmp_path):
    assert command("create", counter()).code == 0
    for path in list(tmp_path.iterdir()):
        if path.suffix == ".tfrecord":
            path.rename(path.with_suffix(".away"))
    supervised.kill()
    eventually(lambda: "returning" in command("list").out and "No such file" in command("list").out)
    assert command("delete", "counter").out == "deleted counter\n"
    assert "counter" not in command("list").out


def test_fault_48_old_batches_stay_readable(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(supervised.socket)
    held = [next(loader)["n"] for _ in range(2)]
    supervised.kill()
    for step in range(2, 100):
        assert rows(next(loader)) == expected(step)
    assert [list(n) for n in held] == [expected(0), expected(1)]


def test_fault_49_trainers_at_different_positions_go_on_where_they_were(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    first, second = attach(supervised.socket), attach(supervised.socket)
    for step in range(4):
        assert rows(next(first)) == expected(step)
    assert rows(next(second)) == expected(0)
    supervised.kill()
    results = []

    def take(loader, start):
        results.append([rows(next(loader)) for _ in range(start, 50)])

    threads = [threading.Thread(target=take, args=(first, 4)), threading.Thread(target=take, args=(second, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=len) == [[expected(s) for s in range(4, 50)], [expected(s) for s in range(1, 50)]]


def test_a_drawn_seed_comes_back(supervised, command, counter, tmp_path):
    spec = counter()
    spec.write_text(spec.read_text().replace("stage { parse_example",
                                             "stage { shuffle { buffer_size: 20 } } stage { parse_example") + "stage { repeat {} }")
    assert command("create", spec).code == 0
    loader = attach(supervised.socket)
    seen = []
    while len(seen) < 11:
        seen.append(rows(next(loader)))
        if len(seen) in (3, 8):
            supervised.kill()
    assert sorted(sum(seen, [])) == list(range(42))


def test_the_end_of_a_stream_is_the_end_after_a_return(supervised, command, counter):
    assert command("create", counter()).code == 0
    loader = attach(supervised.socket)
    for step in range(11):
        assert rows(next(loader)) == expected(step)
    supervised.kill()
    assert list(loader) == []


def test_a_stopped_daemon_that_is_started_again_is_a_pause(tmp_path, counter):
    path = tmp_path / "penstock.sock"
    first = Daemon(path, "--log-level", "error")
    assert Penstock(tmp_path, first.socket)("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(first.socket)
    assert rows(next(loader)) == expected(0)
    assert first.stop() == 0
    second = Daemon(path, "--log-level", "error")
    for step in range(1, 30):
        assert rows(next(loader)) == expected(step)
    second.stop()


def test_fault_48_unavailable_when_no_daemon_returns(tmp_path, counter):
    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error")
    assert Penstock(tmp_path, daemon.socket)("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(daemon.socket, reconnect=0.5)
    next(loader)
    daemon.kill()
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(penstock.UnavailableError, match="gone away.*no attempt to come back succeeded"):
            for _ in range(1000):
                next(loader)
    assert time.monotonic() - started >= 0.4


def test_a_trainer_that_is_busy_with_one_batch_comes_back_meanwhile(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    busy, other = attach(supervised.socket), attach(supervised.socket)
    assert rows(next(busy)) == rows(next(other)) == expected(0)
    for number in (1, 2):
        supervised.kill()
        eventually(lambda: busy.stats()["reconnects"] == number)
    for step in range(1, 30):
        assert rows(next(other)) == expected(step)
        assert rows(next(busy)) == expected(step)


def test_a_busy_rank_is_not_lost(tmp_path, counter):
    rejoin_s = 0.3
    supervised = Supervised(tmp_path, "--rejoin-seconds", str(rejoin_s))
    assert supervised.daemon.is_ready
    assert Penstock(tmp_path, supervised.socket)("create", counter(more="stage { repeat {} }")).code == 0
    ranks = [attach(supervised.socket, mode="rank", rank=rank, world_size=2) for rank in range(2)]
    assert [rows(next(loader)) for loader in ranks] == [[0, 1], [2, 3]]
    supervised.kill()
    found = [rows(next(ranks[0]))]
    # Longer than the daemon waits for a consumer that it knew, and then for a rank that is missing.
    begin = time.monotonic()
    eventually(lambda: time.monotonic() - begin > 5 * rejoin_s)
    assert ranks[1].stats()["reconnects"] == 1
    assert found + [rows(next(ranks[1]))] == [[4, 5], [6, 7]]
    assert [rows(next(loader)) for loader in ranks] == [[8, 9], [10, 11]]
    supervised.stop()


def test_a_busy_worker_of_a_split_group_keeps_what_it_holds(supervised, command, counter):
    assert command("create", counter(more="stage { repeat {} }")).code == 0
    worker = attach(supervised.socket, mode="split")
    held = [next(worker), next(worker)]
    assert [rows(batch) for batch in held] == [expected(0), expected(1)]
    for number in (1, 2):
        supervised.kill()
        eventually(lambda: worker.stats()["reconnects"] == number)
        del held[0]
    for step in range(2, 30):
        assert (rows(next(worker)), worker.redelivered) == (expected(step), False)


def test_what_is_ready_is_served_while_no_daemon_is_there(tmp_path, counter):
    path = tmp_path / "penstock.sock"
    first = Daemon(path, "--log-level", "error")
    assert Penstock(tmp_path, first.socket)("create", counter(more="stage { repeat {} }")).code == 0
    loader = attach(first.socket)
    assert rows(next(loader)) == expected(0)
    eventually(lambda: loader.stats()["published"] >= 4)
    first.kill()
    assert [rows(next(loader)) for _ in range(2)] == [expected(1), expected(2)]
    assert loader.stats()["reconnects"] == 0
    second = Daemon(path, "--log-level", "error")
    eventually(lambda: loader.stats()["reconnects"] == 1)
    assert [rows(next(loader)) for _ in range(2)] == [expected(3), expected(4)]
    second.stop()


def test_the_end_is_not_lost_with_the_daemon(tmp_path, counter):
    path = tmp_path / "penstock.sock"
    first = Daemon(path, "--log-level", "error")
    assert Penstock(tmp_path, first.socket)("create", counter(records=8)).code == 0
    loader = attach(first.socket)
    eventually(lambda: loader.stats()["published"] == 2)
    first.kill()
    assert [rows(batch) for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_run_goes_on_over_a_daemons_death_and_ends_well(supervised, command, counter):
    steps = 20_000  # more lines than the pipe holds: it has not ended when the daemon is killed
    running = command.start("run", counter(more="stage { repeat {} }"), "--steps", str(steps))
    first = running.stdout.readline()
    supervised.kill()
    out, err = running.stdout.read(), running.stderr.read()
    assert running.wait(60) == 0 and err == "", err
    lines = [first, *out.splitlines(keepends=True)]
    assert [int(line.split()[1].rstrip(":")) for line in lines] == list(range(steps))
    assert "run-" not in command("list").out


@pytest.mark.parametrize("name", ["named", None])
def test_fault_48_a_dataset_in_a_killed_daemon_goes_on(supervised, name):
    dataset = penstock.Dataset.range(2000).shuffle(100, seed=7).batch(10)
    iterator = dataset.loader(supervised.socket, name=name)
    firsts = [int(next(iterator)[0]) for _ in range(30)]
    for _ in range(2):
        supervised.kill()
        firsts += [int(next(iterator)[0]) for _ in range(30)]
    firsts += [int(batch[0]) for batch in iterator]
    assert iterator.step == 199
    assert firsts == [int(batch[0]) for batch in dataset.loader(supervised.socket)]


@pytest.mark.parametrize("options", [{"reconnect": 0}, {"timeout": 0.5}])
def test_a_dataset_whose_daemon_stays_away_is_an_error(tmp_path, options):
    daemon = Daemon(tmp_path / "penstock.sock", "--log-level", "error")
    iterator = penstock.Dataset.range(10**9).batch(10).loader(daemon.socket, **options)
    next(iterator)
    daemon.kill()
    with pytest.raises(penstock.UnavailableError):
        for _ in range(100):
            next(iterator)


@pytest.mark.parametrize("how", ["closed", "taken_over"])
def test_who_takes_no_further_batch_is_not_waited_for(tmp_path, counter, how):
    server = Supervised(tmp_path, "--rejoin-seconds", "3600")
    try:
        assert server.daemon.is_ready
        assert Penstock(tmp_path, server.socket)("create", counter(more="stage { repeat {} }")).code == 0
        first = attach(server.socket, consumer="trainer")
        kept = next(first)
        if how == "closed":
            first.close()
        second = attach(server.socket, consumer="trainer", take_over=how == "taken_over")
        step = second.step + 1
        # It holds its connection for what it holds, and is known to come back until it is seen that it will not.
        known = tmp_path / "penstock.sock.state" / "counter.consumers"
        eventually(lambda: known.read_bytes().count(f" {os.getpid()}\n".encode()) == 1)
        server.kill()
        assert rows(next(second)) == expected(step) and rows(kept) == expected(0)
    finally:
        server.stop()
