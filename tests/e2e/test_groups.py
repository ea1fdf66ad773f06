"""Groups: ranks that share each batch's rows, consumers that share the batches, and names."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from programs import Penstock, eventually
from test_return import Supervised

penstock = pytest.importorskip("penstock")

SPEC = """
name: "ranges"
stage {{ range {{ stop: {stop} }} }}
stage {{ batch {{ batch_size: {batch} }} }}
{more}
"""


@pytest.fixture
def supervised(tmp_path, request):
    one = Supervised(tmp_path, "--rejoin-seconds", getattr(request, "param", "0.7"))
    assert one.daemon.is_ready
    yield one
    one.stop()


@pytest.fixture
def create(tmp_path, supervised):
    """Creates the pipeline `ranges`: batches of counting numbers."""

    def make(stop=100, batch=10, more=""):
        path = tmp_path / "ranges.textproto"
        path.write_text(SPEC.format(stop=stop, batch=batch, more=more))
        result = Penstock(tmp_path, supervised.socket)("create", path)
        assert result.code == 0, result
        return supervised

    return make


def attach(server, **options):
    return penstock.attach("ranges", socket=server.socket, timeout=60, **options)


@pytest.mark.parametrize("options", [{"mode": "rank", "rank": 0, "world_size": 1}, {"consumer": "trainer"}], ids=["rank", "name"])
def test_a_closed_loader_makes_room_for_the_next_though_its_batches_live(create, options):
    server = create(stop=1000)
    kept = []
    for number in range(3):
        with attach(server, **options) as loader:
            kept.append(next(loader))
            with pytest.raises(penstock.AlreadyExistsError):
                attach(server, **options)
    others = attach(server, group="others")
    for _ in range(20):
        next(others)
    assert [int(batch[-1] - batch[0]) for batch in kept] == [9, 9, 9]


def attach_when_back(server, **options):
    """As attach, to a daemon that is just being started again: until then nobody listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return attach(server, **options)
        except penstock.UnavailableError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def rank(server, r, n, **options):
    return attach(server, group="ranks", mode="rank", rank=r, world_size=n, **options)


def split(server, **options):
    return attach(server, group="workers", mode="split", **options)


def values(batch):
    return [int(value) for value in batch]


def in_turns(loaders):
    """One batch of each until all have ended."""
    taken = [[] for _ in loaders]
    left = list(range(len(loaders)))
    while left:
        for i in list(left):
            batch = next(loaders[i], None)
            if batch is None:
                left.remove(i)
            else:
                taken[i].append(values(batch))
    return taken


# ---- ranks ----


@pytest.mark.parametrize("world", [1, 2, 3, 4, 7])
def test_ranks_see_their_rows_of_every_batch(create, world):
    server = create(stop=95)
    taken = in_turns([rank(server, r, world) for r in range(world)])
    for r in range(world):
        assert len(taken[r]) == 10
        for step in range(10):
            count = 10 if step < 9 else 5
            low, high = r * count // world, (r + 1) * count // world
            assert taken[r][step] == list(range(10 * step + low, 10 * step + high))


def test_a_rank_sees_its_part_of_valid_rows(create):
    server = create(stop=24)
    # The last batch has 4 rows; of three ranks they see 1, 1 and 2.
    loaders = [rank(server, r, 3) for r in range(3)]
    for _ in range(3):
        rows = []
        for loader in loaders:
            next(loader)
            rows.append((loader.rows, loader.valid))
    assert rows == [(1, 1), (1, 1), (2, 2)]


def test_replicas_see_the_same_rows(create):
    server = create()
    loaders = [rank(server, r, 2, replica=i, replicas=2) for r in range(2) for i in range(2)]
    taken = in_turns(loaders)
    assert taken[0] == taken[1] and taken[2] == taken[3]
    assert [a + b for a, b in zip(taken[0], taken[2])] == [list(range(10 * s, 10 * s + 10)) for s in range(10)]


def test_a_slot_waits_for_all_ranks(create):
    server = create(stop=1000)
    first = rank(server, 0, 2)
    for _ in range(3):  # what the ring holds; the other rank has not come yet
        batch = next(first)
    late = rank(server, 1, 2)
    assert values(next(late)) == list(range(5, 10))
    assert values(batch) == list(range(20, 25))


def test_another_world_size_goes_on_from_the_same_cursor(create):
    server = create(stop=1000)
    loaders = [rank(server, r, 2) for r in range(2)]
    for _ in range(5):
        for loader in loaders:
            next(loader)
    cursors = {loader.cursor for loader in loaders}
    assert len(cursors) == 1
    [cursor] = cursors
    for loader in loaders:
        loader.close()
    # Three do not divide the batch.
    loaders = [rank(server, r, 3, cursor=cursor) for r in range(3)]
    for step in range(5, 12):
        assert sum([values(next(loader)) for loader in loaders], []) == list(range(10 * step, 10 * step + 10))
        assert {loader.step for loader in loaders} == {step}


def test_fault_49_ranks_go_on_after_the_daemons_death(create):
    server = create(stop=10_000)
    loaders = [rank(server, r, 2) for r in range(2)]
    for _ in range(7):
        next(loaders[0])
    for _ in range(4):
        next(loaders[1])
    server.kill()
    results = [[], []]

    def take(r, start):
        for step in range(start, 40):
            results[r].append((step, values(next(loaders[r]))))

    threads = [threading.Thread(target=take, args=(0, 7)), threading.Thread(target=take, args=(1, 4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == [(s, list(range(10 * s, 10 * s + 5))) for s in range(7, 40)]
    assert results[1] == [(s, list(range(10 * s + 5, 10 * s + 10))) for s in range(4, 40)]


def test_a_rank_behind_its_group_joins_it_however_fast_it_reads(create):
    """It is served by itself up to the place where the others wait for it, and may not run past that."""
    server = create(stop=100_000_000)
    # The first does not come back by itself.
    loaders = [rank(server, 0, 2, reconnect=0), rank(server, 1, 2)]
    for step in range(41):
        for loader in loaders:
            next(loader)
        if step == 20:
            cursor = loaders[0].cursor
    server.kill()
    loaders[0].close()  # no daemon hears of it
    next(loaders[1])
    again = attach_when_back(server, group="ranks", mode="rank", rank=0, world_size=2, cursor=cursor)
    results = [[], []]

    def take_them():
        for _ in range(2000):
            results[1].append(values(next(loaders[1])))
        loaders[1].close()

    other = threading.Thread(target=take_them)
    other.start()
    while other.is_alive():
        results[0].append(values(next(again)))
    other.join()
    assert results[1] == [list(range(10 * s + 5, 10 * s + 10)) for s in range(42, 2042)]
    assert len(results[0]) >= 2000
    assert results[0] == [list(range(10 * s, 10 * s + 5)) for s in range(21, 21 + len(results[0]))]


HOLDER = """
import sys, time
import penstock
loader = penstock.attach("ranges", socket=sys.argv[1], **eval(sys.argv[2]))
kept = [next(loader) for _ in range(int(sys.argv[3]))]
print("holds", loader.step, flush=True)
time.sleep(1000)
"""


def start_holder(server, batches, **options):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, server.socket, repr(options), str(batches)],
                               stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline().split()
    assert line[0] == "holds"
    return process, int(line[1])


def kill(process):
    process.kill()
    process.wait(60)
    process.stdout.close()


def test_a_rank_that_dies_and_comes_back_gets_what_it_had_not_released(create):
    server = create(stop=10_000)
    first = rank(server, 0, 2)
    process, step = start_holder(server, 1, group="ranks", mode="rank", rank=1, world_size=2)
    assert step == 0
    kill(process)
    for _ in range(3):
        next(first)
    again = rank(server, 1, 2)
    for step in range(20):
        assert values(next(again)) == list(range(10 * step + 5, 10 * step + 10))
        if step < 17:
            assert values(next(first)) == list(range(10 * (step + 3), 10 * (step + 3) + 5))


def test_a_lost_rank_ends_its_group(create):
    server = create(stop=10_000)
    first = rank(server, 0, 2)
    process, _ = start_holder(server, 1, group="ranks", mode="rank", rank=1, world_size=2)
    next(first)
    kill(process)
    with pytest.raises(penstock.PeerLostError, match="PEER_LOST: rank 1 of 2 has died and not come back in 0.7 seconds .*ranks"):
        for _ in range(1000):
            next(first)
    with pytest.raises(penstock.PeerLostError):
        next(first)
    first.close()
    # And a new one begins, where the ring stands.
    loaders = [rank(server, r, 2) for r in range(2)]
    low = values(next(loaders[0]))[0]
    for step in range(1, 20):
        assert [values(next(loader))[0] for loader in loaders[:1]] == [low + 10 * step]
        next(loaders[1])


# Long enough for a busy machine to tell that the rank has died.
@pytest.mark.parametrize("supervised", ["6"], indirect=True)
def test_a_pause_of_the_daemon_counts_for_nobody(create, tmp_path):
    """Frozen for longer than a lost rank is waited for: the time in which it could not have come back is not counted."""
    server = create(stop=10_000)
    first = rank(server, 0, 2)
    process, _ = start_holder(server, 1, group="ranks", mode="rank", rank=1, world_size=2)
    next(first)
    kill(process)
    command = Penstock(tmp_path, server.socket)
    eventually(lambda: len(command("consumers", "ranges").out.splitlines()) == 2)  # and a head
    os.kill(server.child, signal.SIGSTOP)
    time.sleep(6.5)
    os.kill(server.child, signal.SIGCONT)
    again = rank(server, 1, 2)
    for step in range(20):
        assert values(next(again)) == list(range(10 * step + 5, 10 * step + 10))
        if step > 0:
            assert values(next(first)) == list(range(10 * step, 10 * step + 5))


def test_a_rank_that_leaves_does_not_end_its_group(create):
    server = create(stop=200)
    first, second = rank(server, 0, 2), rank(server, 1, 2)
    next(first), next(second)
    second.close()
    assert len(list(first)) == 19


def test_a_rank_that_has_left_comes_back_where_the_ring_stands(create):
    server = create(stop=100_000)
    first, second = rank(server, 0, 2), rank(server, 1, 2)
    for _ in range(30):
        next(first), next(second)
    second.close()
    for _ in range(20):
        next(first)
    again = rank(server, 1, 2)
    low = values(next(again))[0]
    assert low % 10 == 5 and 10 * 30 <= low <= 10 * 60
    for step in range(1, 20):
        assert values(next(again))[0] == low + 10 * step
        next(first)


def test_a_group_is_of_one_kind(create):
    server = create()
    loader = rank(server, 0, 2)
    with pytest.raises(penstock.FailedPreconditionError, match="2 ranks of 1 replicas, not 3"):
        rank(server, 1, 3)
    with pytest.raises(penstock.FailedPreconditionError, match="its mode is rank, not broadcast"):
        attach(server, group="ranks")
    with pytest.raises(penstock.AlreadyExistsError, match="rank 0 is attached"):
        rank(server, 0, 2)
    with pytest.raises(penstock.InvalidArgumentError):
        rank(server, 2, 2)
    with pytest.raises(penstock.InvalidArgumentError):
        attach(server, mode="rank")
    loader.close()


def test_fault_46_a_name_twice(create):
    server = create(stop=1000)
    first = attach(server, consumer="trainer")
    assert values(next(first)) == list(range(10))
    with pytest.raises(penstock.AlreadyExistsError, match='"trainer" is attached'):
        attach(server, consumer="trainer")
    attach(server, consumer="trainer", group="other").close()
    second = attach(server, consumer="trainer", take_over=True)
    with pytest.raises(penstock.DetachedError, match="taken over"):
        for _ in range(1000):
            next(first)
    # At the first batch that the other one had not let go of.
    assert second.state_dict()["step"] + 1 in (0, 1)
    assert values(next(second))[0] in (0, 10)


# ---- split ----


def test_each_batch_goes_to_one_consumer(create):
    server = create(stop=1000)
    loaders = [split(server) for _ in range(3)]
    taken = [[] for _ in loaders]

    def take(i):
        for batch in loaders[i]:
            taken[i].append((loaders[i].step, values(batch), loaders[i].redelivered))

    threads = [threading.Thread(target=take, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = sorted(sum(taken, []))
    assert everything == [(s, list(range(10 * s, 10 * s + 10)), False) for s in range(100)]


@pytest.mark.parametrize("delivery, marked", [("at_least_once", True), ("at_most_once", False)])
def test_what_a_dead_consumer_held(create, delivery, marked):
    server = create(stop=1000)
    process, last = start_holder(server, 2, group="workers", mode="split", delivery=delivery)
    assert last == 1
    kill(process)
    loader = split(server, delivery=delivery)
    taken = []
    for batch in loader:
        taken.append((loader.step, loader.redelivered))
    held = [(0, True), (1, True)] if marked else []
    assert sorted(taken) == held + [(s, False) for s in range(2, 100)]


def test_the_end_waits_for_what_may_come_back(create):
    server = create(stop=30)
    process, _ = start_holder(server, 1, group="workers", mode="split")
    loader = split(server)
    assert values(next(loader)) == list(range(10, 20))
    assert values(next(loader)) == list(range(20, 30))
    timer = threading.Timer(0.3, kill, [process])
    timer.start()
    assert values(next(loader)) == list(range(10))
    assert loader.redelivered
    assert next(loader, None) is None
    timer.join()


def test_fault_49_a_split_group_outlives_the_daemon(create):
    server = create(stop=2000)
    loaders = [split(server) for _ in range(2)]
    held = [next(loader) for loader in loaders]
    dying, step = start_holder(server, 1, group="workers", mode="split")
    assert step == 2
    seen = {0: 1, 1: 1}
    marked = set()

    def take(loader, count):
        for _ in range(count):
            batch = next(loader)
            assert values(batch) == list(range(10 * loader.step, 10 * loader.step + 10))
            seen[loader.step] = seen.get(loader.step, 0) + 1
            if loader.redelivered:
                marked.add(loader.step)

    def both(count):
        threads = [threading.Thread(target=take, args=(loader, count)) for loader in loaders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    both(20)
    kill(dying)
    server.kill()
    both(20)
    server.kill()
    assert [values(batch)[0] for batch in held] == [0, 10]
    del held

    def to_the_end(loader):
        for batch in loader:
            seen[loader.step] = seen.get(loader.step, 0) + 1
            if loader.redelivered:
                marked.add(loader.step)

    threads = [threading.Thread(target=to_the_end, args=(loader,)) for loader in loaders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {step: 1 for step in range(200)}
    assert marked == {2}


def test_a_group_beside_it_sees_everything(create):
    server = create(stop=500)
    workers = [split(server) for _ in range(2)]
    everything = attach(server)
    steps = []
    for step in range(50):
        assert values(next(everything))[0] == 10 * step
        next(workers[step % 2])
        steps.append(workers[step % 2].step)
    assert sorted(steps) == list(range(50))


# In front of a split group's file; zeros: it is forgotten.
MAGIC = b"PNSSPLT1"


def test_a_group_that_is_forgotten_leaves_a_file_that_the_next_one_has(create, tmp_path):
    server = create(stop=10000)
    other = attach(server, group="others")
    for _ in range(2):
        worker = split(server)
        (file,) = tmp_path.rglob("ranges.split-*")
        assert file.read_bytes()[:8] == MAGIC
        next(worker)
        worker.close()
        eventually(lambda: file.read_bytes()[:8] == bytes(8))
    server.kill()
    next(other)
    eventually(lambda: not file.exists())


def test_a_group_that_went_with_its_ring_does_not_come_back(create, tmp_path):
    server = create(stop=100000, more="ring { slots: 4 }")
    worker = split(server)
    for step in range(30):
        assert values(next(worker))[0] == 10 * step
        if step == 2:
            cursor = worker.cursor
    (file,) = tmp_path.rglob("ranges.split-*")
    worker.close()
    command = Penstock(tmp_path, server.socket)
    eventually(lambda: len(command("consumers", "ranges").out.splitlines()) < 2)
    # Alone, so that the stream goes to where it comes from.
    other = attach(server, group="others", cursor=cursor)
    assert values(next(other))[0] == 30
    assert file.read_bytes()[:8] == bytes(8)
    server.kill()
    for step in range(4, 24):
        assert values(next(other))[0] == 10 * step
    assert not file.exists()


@pytest.mark.parametrize("resumed", [2, 9])
def test_a_split_group_of_before_a_restart_is_not_lost_to_a_lone_consumer(create, resumed):
    server = create(stop=1000, batch=10, more="ring { slots: 8 }")
    other, worker = attach(server, group="others"), split(server)
    states = [None]
    for step in range(10):
        next(other)
        states.append(other.state_dict())
        if step < 6:
            assert values(next(worker))[0] == 10 * step
    # Step 5 is still in its hands: it comes back.
    other.close()
    worker.close()
    server.kill()
    # Alone, behind and in front of what the group still has to do: the stream stays there.
    other = attach_when_back(server, group="others", cursor=states[resumed]["cursor"])
    assert values(next(other))[0] == 10 * resumed
    worker = split(server)
    batch = next(worker)
    assert (values(batch)[0], worker.redelivered) in [(50, True), (60, False)]
    taken = [values(batch)[0]]
    for _ in range(12):
        taken.append(values(next(worker))[0])
        resumed += 1
        assert values(next(other))[0] == 10 * resumed
    assert taken == list(range(taken[0], taken[0] + 130, 10))


def behind(server, steps):
    """A cursor behind so many steps, and a loader of a group of its own that has gone further."""
    loader = attach(server, group="ahead")
    for _ in range(steps):
        next(loader)
    cursor = loader.cursor
    for _ in range(2000):
        next(loader)
    return cursor, loader


@pytest.mark.parametrize("options", [{"mode": "rank", "rank": 0, "world_size": 1}, {"consumer": "trainer"}], ids=["rank", "name"])
def test_fault_46_who_catches_up_has_its_name_or_rank(create, options):
    server = create(stop=10_000_000)
    cursor, _ahead = behind(server, 1)
    first = attach(server, group="late", cursor=cursor, **options)
    assert values(next(first))[0] == 10
    with pytest.raises(penstock.AlreadyExistsError, match="is attached already, from process"):
        attach(server, group="late", cursor=cursor, **options)
    assert values(next(first))[0] == 20
    second = attach(server, group="late", cursor=cursor, take_over=True, **options)
    assert values(next(second))[0] == 10
    with pytest.raises(penstock.DetachedError, match="taken over"):
        for _ in range(100):
            next(first)


def test_a_split_group_that_waits_for_its_worker_stays_though_another_group_goes_back(create):
    server = create(stop=10_000_000)
    evaluation = attach(server, group="evaluation")
    next(evaluation)
    cursor = evaluation.cursor
    evaluation.close()
    worker = split(server)
    for _ in range(300):
        next(worker)
    worker.close()
    process, step = start_holder(server, 1, group="workers", mode="split")
    kill(process)
    with attach(server, group="evaluation", cursor=cursor) as evaluation:
        assert values(next(evaluation))[0] == 10
    worker = split(server)
    next(worker)
    assert (worker.step, worker.redelivered) == (step, True)


def test_a_worker_that_holds_as_many_batches_as_the_next_ring_has_slots_goes_on(create):
    server = create(stop=10_000_000, more="ring { slots: 3 }")
    worker, other = split(server), split(server)
    next(worker)
    next(other)
    other.close()
    eventually(lambda: worker.stats()["lease_share"] >= 3)
    kept = [next(worker) for _ in range(4)]
    before = worker.step
    server.kill()
    kept += [next(worker) for _ in range(8)]
    assert worker.step == before + 8
    assert [batch[0] for batch in kept] == [10 * step for step in range(before - 3, before + 9)]


def test_a_lone_loader_goes_to_a_position_without_the_batches_in_between(create, tmp_path):
    server = create(stop=10_000_000)
    _, ahead = behind(server, 1)
    state = ahead.state_dict()
    ahead.close()
    command = Penstock(tmp_path, server.socket)
    assert command("delete", "ranges").code == 0
    create(stop=10_000_000)
    with attach(server) as loader:
        loader.load_state_dict(state)
        next(loader)
        assert loader.step == 2001
    rows = int(command("stats", "ranges", "--interval", "0").out.split("rows")[1].split()[0])
    assert rows < 1000


def test_what_a_forked_child_has_of_a_closed_loader_is_no_consumer(create):
    server = create(stop=10_000_000)

    def sockets():
        folder = f"/proc/{server.child}/fd"
        return sum(os.readlink(os.path.join(folder, number)).startswith("socket:") for number in os.listdir(folder))

    before = sockets()
    loader = attach(server)
    next(loader)
    assert sockets() > before
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        loader.close()
        del loader
        eventually(lambda: sockets() == before)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
