"""Consumers that take batches of another size than the pipeline's, over one stream."""

import collections
import itertools
import struct
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest

import tfrecord_files
from own_sizes import own_batches
from programs import Penstock, eventually
from test_groups import attach, create, kill, rank, split, start_holder, supervised, values  # noqa: F401

penstock = pytest.importorskip("penstock")

SIZES = [1, 4, 5, 12, 18]


def steps_of(stop, batch, passes=1):
    return [list(range(first, min(first + batch, stop))) for first in range(0, stop, batch)] * passes


def expected(stop, batch, size, passes=1):
    """Rows of each batch."""
    return [rows for _, rows in own_batches(steps_of(stop, batch, passes), batch, size)]


@pytest.mark.parametrize("size", SIZES)
def test_each_consumer_has_its_own_batch_size(tmp_path, create, size):
    server = create(stop=100, batch=12)
    whole, own = attach(server), attach(server, group="own", batch_size=size)
    # 100 rows: eight batches of 12, and one of 4.
    want = own_batches(steps_of(100, 12), 12, size)
    taken = []
    for step in range(9):
        rows = values(next(whole))
        assert rows == list(range(12 * step, min(12 * step + 12, 100))) and whole.step == step
        # Those that these rows complete.
        while len(taken) < len(want) and want[len(taken)][1][-1] <= rows[-1] and (step == 8 or len(want[len(taken)][1]) == size):
            rows_of_own = values(next(own))
            taken.append((own.step, rows_of_own))
            assert own.rows == own.valid == len(rows_of_own)
    assert taken == want
    with pytest.raises(StopIteration):
        next(own)
    with pytest.raises(StopIteration):
        next(whole)
    stats = own.stats()
    # Only what crosses from one batch of the pipeline into the next is copied.
    crossing = sum(rows[0] // 12 != rows[-1] // 12 for _, rows in want)
    assert (stats["copies"], stats["joined"]) == (0, crossing)
    seen = Penstock(tmp_path, server.socket)("stats", "ranges").out
    assert "steps       9 " in seen and "rows        100 " in seen


@pytest.mark.parametrize("size", [4, 5, 18, 30, 1000])
def test_passes_with_a_short_end(create, size):
    server = create(stop=40, batch=12, more="stage { repeat { count: 4 } }")
    loader = attach(server, batch_size=size)
    taken = [(values(batch), loader.step) for batch in loader]
    assert [(step, rows) for rows, step in taken] == own_batches(steps_of(40, 12, 4), 12, size)


@pytest.mark.parametrize("size", [4, 5, 8, 18, 30])
def test_rows_that_fill_up(create, size):
    """41 rows, by 12 with 7 that fill up: those of the last batch are not elements."""
    server = create(stop=41, batch="12 remainder: PAD")
    loader = attach(server, batch_size=size)
    taken = [(values(batch), loader.valid) for batch in loader]
    assert [rows[:valid] for rows, valid in taken] == expected(41, 12, size)
    assert all(len(rows) == size and not any(rows[valid:]) for rows, valid in taken)


@pytest.mark.parametrize("size", [4, 5, 18])
def test_any_batch_is_a_place_to_go_on_from(create, size):
    server = create(stop=40, batch=12, more="stage { repeat { count: 2 } }")
    want = own_batches(steps_of(40, 12, 2), 12, size)
    loader = attach(server, batch_size=size)
    states = [loader.state_dict()]
    seen = []
    for batch in loader:
        seen.append((loader.step, values(batch)))
        states.append(loader.state_dict())
    assert seen == want
    # Alone, the stream goes there; beside others, it is replayed.
    for busy in [False, True]:
        other = attach(server, group="other") if busy else None
        for taken, state in enumerate(states):
            if taken == 0:
                continue
            again = attach(server, batch_size=size, cursor=state["cursor"])
            # Behind a short batch numbers are left out.
            if taken < len(want):
                assert again.state_dict()["step"] == want[taken][0] - 1
            assert [(again.step, values(batch)) for batch in again] == want[taken:], taken
            again.close()
        del other
    # load_state_dict goes back and forth, in the middle of a batch too.
    for taken in [4, 1, 3, 2]:
        loader.load_state_dict(states[taken])
        assert (values(next(loader)), loader.step) == (want[taken][1], want[taken][0])
        assert loader.stats()["leases"] <= 1


def test_a_cursor_inside_of_a_batch_is_for_any_size(create):
    server = create(stop=40, batch=12)
    loader = attach(server, batch_size=4)
    next(loader)
    cursor = loader.state_dict()["cursor"]
    for _ in range(2):
        next(loader)
    # Here it lies between two batches of the pipeline.
    between = loader.state_dict()["cursor"]
    loader.close()
    for size in [2, 3, 5, 12, 50]:
        rows = [values(batch) for batch in attach(server, batch_size=size, cursor=cursor)]
        assert list(itertools.chain(*rows)) == list(range(4, 40))
        assert [len(row) for row in rows[:-1]] == [size] * (len(rows) - 1)
    with pytest.raises(penstock.FailedPreconditionError, match="inside of a batch"):
        attach(server, cursor=cursor)
    assert values(next(attach(server, cursor=between))) == list(range(12, 24))
    assert values(next(attach(server, batch_size=7, cursor=between))) == list(range(12, 19))


def test_who_comes_late_has_the_same_batches(create):
    server = create(stop=10000, batch=12)
    first = attach(server, batch_size=18)
    seen = {first.step: values(batch) for batch in itertools.islice(first, 20)}
    # At steps of which only every third begins with a row of such a batch.
    for number in range(4):
        late = attach(server, group=f"late-{number}", batch_size=18)
        rows = values(next(late))
        assert late.step > 0 and rows == list(range(18 * late.step, 18 * late.step + 18))
        assert seen.get(late.step, rows) == rows
        late.close()
        next(first)


@pytest.mark.parametrize("size", [5, 18])
def test_who_misses_batches_goes_on_with_a_whole_one(create, size):
    server = create(stop=12000, batch=12)
    own, whole = attach(server, group="own", batch_size=size, slow="skip"), attach(server)
    seen = []
    for _ in range(3):
        for _ in range(30):
            next(whole)
        while (own.step + 2) * size <= (whole.step + 1) * 12:
            rows = values(next(own))
            first = size * own.step
            # Rows that were there in front of the gap are a short batch.
            assert rows == list(range(first, first + len(rows))) and len(rows) <= size
            seen.append((own.step, len(rows)))
    steps = [step for step, _ in seen]
    assert steps == sorted(set(steps)) and own.stats()["skipped"] > 60
    assert sum(length != size for _, length in seen) <= 3
    # What lies behind it can be gone on from.
    again = attach(server, group="again", batch_size=size, cursor=own.state_dict()["cursor"])
    assert values(next(again)) == list(range(size * (own.step + 1), size * (own.step + 2)))


@pytest.mark.parametrize("size", [4, 5, 18])
def test_memory_comes_back_with_the_last_rows(create, size):
    server = create(stop=10000, batch=12)
    loader = attach(server, batch_size=size)
    held = [next(loader) for _ in range(200)]  # far more than the ring has
    assert [values(batch) for batch in held] == expected(10000, 12, size)[:200]
    assert loader.stats()["copies"] > 0 or size == 18
    held.clear()
    first = next(loader)
    second = next(loader)
    assert loader.stats()["leases"] >= (size < 12)
    del first, second
    for _ in range(100):
        next(loader)
    loader.close()
    # Nothing of the ring is lost: others go on.
    other = attach(server)
    for _ in range(100):
        next(other)


@pytest.mark.parametrize("size", [4, 5, 30])
def test_a_killed_daemon_in_the_middle_of_a_batch(create, size):
    server = create(stop=200, batch=12, more="stage { repeat {} }")
    loader = attach(server, batch_size=size)
    want = own_batches(steps_of(200, 12, 40), 12, size)
    for number in range(120):
        if number % 20 == 10:
            server.kill()
        assert (values(next(loader)), loader.step) == (want[number][1], want[number][0])


@pytest.mark.parametrize("size, world", [(4, 2), (7, 3), (30, 5)])
def test_ranks_of_a_size_of_their_own(create, size, world):
    server = create(stop=100, batch=12, more="stage { repeat { count: 2 } }")
    loaders = [rank(server, r, world, batch_size=size) for r in range(world)]
    for number, rows in own_batches(steps_of(100, 12, 2), 12, size):
        for r, loader in enumerate(loaders):
            mine = values(next(loader))
            count = len(rows)
            assert mine == rows[r * count // world:(r + 1) * count // world]
            assert (loader.step, loader.rows, loader.valid) == (number, len(mine), len(mine))
        if number in (3, 4, 20):
            server.kill()
    for loader in loaders:
        with pytest.raises(StopIteration):
            next(loader)


@pytest.mark.parametrize("size", [4, 5, 18])
def test_a_split_group_of_a_size_of_its_own(create, size):
    server = create(stop=600, batch=12)
    workers = [split(server, batch_size=size) for _ in range(3)]
    taken = []

    def take(worker):
        for batch in worker:
            taken.append(values(batch))
            assert worker.step == taken[-1][0] // size and not worker.redelivered

    # One alone would wait for what the others may have to give back.
    threads = [threading.Thread(target=take, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(itertools.chain(*taken)) == list(range(600))
    # What is left at the end is short.
    assert sum(len(rows) != size for rows in taken) <= 3


def test_what_a_dead_worker_held_of_a_joined_batch_comes_back(create):
    server = create(stop=240, batch=12)
    # Two batches of 18: rows of three of the pipeline's, of which the last is open.
    holder, _ = start_holder(server, 2, group="workers", mode="split", batch_size=18)
    other = split(server, batch_size=18)
    taken = [values(next(other))]
    kill(holder)
    marked = set()
    for batch in other:
        taken.append(values(batch))
        if other.redelivered:
            marked.update(taken[-1])
        del batch
    rows = sorted(itertools.chain(*taken))
    assert rows == list(range(240))
    assert len(marked) >= 36


@pytest.mark.parametrize("size", [5, 18, 30])
def test_a_split_group_of_a_size_of_its_own_outlives_the_daemon(create, size):
    server = create(stop=2400, batch=12, more="ring { slots: 24 }")
    workers = [split(server, batch_size=size) for _ in range(2)]
    held, given, marked = [[], []], collections.Counter(), collections.Counter()
    for number in range(30):
        # Of several that are held when the daemon dies, one is let go of after the other, while new ones are taken.
        for mine, worker in zip(held, workers):
            batch = next(worker)
            mine[:] = [*mine, batch][-3:]
            given.update(values(batch))
            # Of one that was not back in time, what it held is given out again.
            marked.update(values(batch) if worker.redelivered else [])
        if number % 5 == 3:
            server.kill()
    del batch
    mine.clear()
    held.clear()
    for worker in workers:
        worker.close()
    eventually(lambda: server.listens)
    last = split(server)
    for batch in last:
        given.update(values(batch))
        marked.update(values(batch) if last.redelivered else [])
        del batch
    assert sorted(given) == list(range(2400))
    assert [row for row in given if given[row] > marked[row] + 1] == []


@pytest.mark.parametrize("size", [4, 5, 17])
def test_a_worker_that_leaves_gives_back_what_it_had_not_given(create, size):
    server = create(stop=240, batch=12)
    leaver = split(server, batch_size=size)
    for _ in range(2):
        given = values(next(leaver))
    leaver.close()
    other = split(server, batch_size=size)
    taken, marked = [], set()
    for batch in other:
        taken += values(batch)
        if other.redelivered:
            marked.update(values(batch))
        del batch
    # All but what was given, of which the rows come again that lie in a batch of the pipeline with others.
    assert set(range(240)) - set(taken) <= set(range(2 * size)) and len(set(taken)) == len(taken)
    assert marked and min(marked) // 12 <= given[-1] // 12


LAST_HOLDER = """
import sys, time
import penstock
loader = penstock.attach("ranges", socket=sys.argv[1], group="ranks", mode="rank", rank=1, world_size=2, batch_size=int(sys.argv[2]))
next(loader)
kept = next(loader)
print(loader.step, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("size", [5, 18])
def test_a_rank_that_dies_with_a_batch_of_its_own_size_gets_it_again(create, size):
    server = create(stop=10_000, batch=12)
    first = rank(server, 0, 2, batch_size=size)
    process = subprocess.Popen([sys.executable, "-c", LAST_HOLDER, server.socket, str(size)], stdout=subprocess.PIPE, text=True)
    held = int(process.stdout.readline())
    assert held == 1
    kill(process)
    again = rank(server, 1, 2, batch_size=size)
    for _ in range(8):
        rows = values(next(again))
        number = again.step
        assert rows == list(range(number * size + size // 2, (number + 1) * size))
        # In front of those that it had not released may come some that lie in the same batch of the pipeline.
        assert number <= held
        if number == held:
            break
    assert number == held
    for number in range(20):
        assert values(next(first)) == list(range(number * size, number * size + size // 2))
        next(again)


def test_what_is_refused(tmp_path, create):
    server = create(stop=40, batch=12)
    for size in [0, -1]:
        with pytest.raises(penstock.InvalidArgumentError, match="batch_size"):
            attach(server, batch_size=size)
    # A ring tells paddings of 20 bytes at most, so that the client does not know what to fill up with.
    tfrecord_files.write(tmp_path / "words.tfrecord", [tfrecord_files.example(words=[b"w"] * (n % 5 + 1)) for n in range(40)])
    spec = tmp_path / "padded.textproto"
    spec.write_text("""
        name: "padded"
        stage { tfrecord { files: "words.tfrecord" } }
        stage { parse_example { feature { key: "words" bytes { variable_length: true } } } }
        stage { padded_batch { batch_size: 12 padding_value { feature: "words" bytes_value: "a padding of 21 bytes" } } }
    """)
    assert Penstock(tmp_path, server.socket)("create", spec).code == 0
    with pytest.raises(penstock.FailedPreconditionError, match='divided, but not joined, since axis 1 of tensor "words"'):
        penstock.attach("padded", socket=server.socket, batch_size=5)
    assert penstock.attach("padded", socket=server.socket, batch_size=4).stats()["joined"] == 0


REPEATED = "stage { repeat { count: 3 } }"


@pytest.mark.parametrize("size", [1, 4, 5, 12, 18, 1000])
@pytest.mark.parametrize("stop, batch, more", [
    (100, "12", ""),
    (40, "12", REPEATED),
    (36, "12", REPEATED),
    (5, "12", REPEATED),
    (41, "12 remainder: PAD", REPEATED),
    (41, "12 remainder: WRAP", REPEATED),
    (41, "12 drop_remainder: true", REPEATED),
    (5, "12 drop_remainder: true", ""),
    (40, "12", REPEATED + REPEATED),
    (40, "12", "stage { repeat {} } stage { take { count: 11 } }"),
    (40, "12", "stage { take { count: 4 } } stage { take { count: 3 } }"),
])
def test_the_length_counts_batches_of_ones_own(create, stop, batch, more, size):
    server = create(stop=stop, batch=batch, more=more)
    loader = attach(server, batch_size=size)
    assert len(loader) == len(list(loader))
    # Wherever it begins.
    assert len(attach(server, batch_size=size)) == len(loader)
    ranks = [rank(server, r, 2, batch_size=size) for r in range(2)]
    assert [len(one) for one in ranks] == [len(loader)] * 2


@pytest.mark.parametrize("batch, more, why", [
    ("12", "stage { skip { count: 1 } }", "decides which of them are short"),
    ("12", "stage { take { count: 2 } }" + REPEATED, "decides which of them are short"),
    ("12", "stage { repeat {} }", "has no end"),
])
def test_a_length_that_is_not_known(create, batch, more, why):
    server = create(stop=40, batch=batch, more=more)
    with pytest.raises(TypeError, match=why):
        len(attach(server, batch_size=5))


def test_a_worker_of_a_split_group_does_not_know_how_many_it_gets(create):
    server = create(stop=40, batch=12)
    worker = split(server, batch_size=5)
    with pytest.raises(TypeError, match="split group"):
        len(worker)
    assert len(split(server)) == 4


PADDED = """
name: "padded"
ring {{ slot_bytes: 1000000 }}
stage {{ tfrecord {{ files: "padded.tfrecord" }} }}
stage {{ parse_example {{
  feature {{ key: "ids" int64 {{ variable_length: true }} }} feature {{ key: "words" bytes {{ variable_length: true }} }}
  feature {{ key: "png" bytes {{}} }}
}} }}
stage {{ map {{ out: "ids = ids" out: "words = words" out: "grid = decode_png(png, channels=1)" }} }}
stage {{ padded_batch {{ batch_size: 8 {options}
  padding_value {{ feature: "ids" int64_value: -7 }} padding_value {{ feature: "words" bytes_value: "nothing" }}
  padding_value {{ feature: "grid" int64_value: 201 }} }} }}
"""


def padded(rows, sizes):
    """ids, words and grid of some records, padded to the largest of the sizes."""
    columns, words, high, wide = np.max(sizes, axis=0)
    found = {"ids": np.full((len(rows), columns), -7, np.int64), "words": np.full((len(rows), words), b"nothing", object),
             "grid": np.full((len(rows), high, wide, 1), 201, np.uint8)}
    for i, n in enumerate(rows):
        for key, value in (("ids", ids_of(n)), ("words", words_of(n))):
            found[key][i, : len(value)] = value
        grid = grid_of(n)
        found["grid"][i, : grid.shape[0], : grid.shape[1], 0] = grid
    return found


def sizes_of(n):
    return [len(ids_of(n)), len(words_of(n)), *grid_of(n).shape]


def grid_of(n):
    high, wide = n % 5 + 1 + n // 20, n * 3 % 7 + 4 - n // 16
    return (np.arange(high * wide) + n).astype(np.uint8).reshape(high, wide)


def png_of(grid):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    lines = b"".join(b"\0" + line.tobytes() for line in grid)
    header = struct.pack(">IIBBBBB", grid.shape[1], grid.shape[0], 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def ids_of(n):
    return [n + i for i in range(n * 5 % 11)]


def words_of(n):
    return [b"%d" % n * i for i in range(n * 3 % 7 + n // 24)]


@pytest.mark.parametrize("options, stop", [("", 60), ("remainder: PAD", 61)])
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("size", [4, 5, 12, 20])
def test_padded_rows_are_joined(tmp_path, supervised, options, stop, ranks, size):
    records = [{"png": png_of(grid_of(n)), **{key: value for key, value in (("ids", ids_of(n)), ("words", words_of(n))) if value}}
               for n in range(stop)]
    tfrecord_files.write(tmp_path / "padded.tfrecord", [tfrecord_files.example(**record) for record in records])
    (tmp_path / "padded.textproto").write_text(PADDED.format(options=options))
    created = Penstock(tmp_path, supervised.socket)("create", tmp_path / "padded.textproto")
    assert created.code == 0, created
    # Of each batch of the pipeline.
    sizes = [np.max([sizes_of(n) for n in range(at, min(at + 8, stop))], axis=0) for at in range(0, stop, 8)]
    assert all(len(set(axis)) > 1 for axis in zip(*sizes))
    modes = [{"group": "r", "mode": "rank", "rank": r, "world_size": ranks} for r in range(ranks)] if ranks > 1 else [{}]
    loaders = [penstock.attach("padded", socket=supervised.socket, batch_size=size, **one) for one in modes]
    seen = 0
    for number, rows in own_batches(steps_of(stop, 8), 8, size):
        # Of the pipeline's batches that it has rows of, whichever of them a rank sees.
        want = padded(rows, sizes[rows[0] // 8 : rows[-1] // 8 + 1])
        count = len(rows)
        if options and len(rows) < size:
            count = size
            for key, value in (("ids", -7), ("words", b"nothing"), ("grid", 201)):
                more = np.full((size - len(rows), *want[key].shape[1:]), value, want[key].dtype)
                want[key] = np.concatenate([want[key], more])
        for r, loader in enumerate(loaders):
            batch = next(loader)
            first, end = r * count // ranks, (r + 1) * count // ranks
            assert loader.step == number and sorted(batch) == sorted(want)
            assert loader.valid == max(0, min(len(rows), end) - first)
            for key, expected in want.items():
                assert batch[key].shape == expected[first:end].shape, (key, number, r)
                assert batch[key].tolist() == expected[first:end].tolist(), (key, number, r)
        seen += len(rows)
    assert seen == stop
    assert size == 4 or loaders[0].stats()["joined"] > 0
    for loader in loaders:
        with pytest.raises(StopIteration):
            next(loader)


def test_writing_into_one_part_leaves_the_others(create):
    from penstock import _core

    server = create(stop=4000, batch=12)
    loader = attach(server, batch_size=5)
    other = attach(server, group="other")
    written = []
    for number in range(90):
        batch = next(loader)
        assert values(batch) == list(range(5 * number, 5 * number + 5))
        mine = _core.writable(batch)
        # A joined one is the trainer's own anyhow.
        mine = batch if mine is None else mine
        if mine.flags.writeable:
            mine += 1_000_000
            # Both the one before and this one keep what was written, until they are let go of.
            written = [*written, (number, mine)][-2:]
        for earlier, array in written:
            assert array.tolist() == list(range(5 * earlier + 1_000_000, 5 * earlier + 1_000_005))
        if number % 5 == 4:
            first = (5 * number + 5) // 12 - 1
            while other.step < first:
                rows = values(next(other))
                assert rows == list(range(12 * other.step, 12 * other.step + 12))


def records(n):
    """Of each kind, as a batch of one record shows it."""
    return {
        "n": n,
        "pair": [n, -n],
        "name": b"%d" % n * (n % 3),
        "words": [b"w%d" % i for i in range(n % 4)],
        "ids": list(range(n, n + n % 5)),
        "bag": [b"b%d" % i for i in range(n % 3)],
        "weights": [float(n)] * (n % 2 + 1),
    }


KINDS = """
name: "kinds"
ring {{ slot_bytes: 1000000 }}
stage {{ tfrecord {{ files: "kinds.tfrecord" }} }}
stage {{ parse_example {{
  feature {{ key: "n" int64 {{}} }} feature {{ key: "pair" int64 {{ shape: 2 }} }}
  feature {{ key: "name" bytes {{}} }} feature {{ key: "words" bytes {{ variable_length: true }} }}
  feature {{ key: "ids" ragged {{ dtype: "int64" }} }}
}} }}
stage {{ ragged_batch {{ batch_size: 8 }} }}
"""

SPARSE = """
name: "kinds"
ring {{ slot_bytes: 1000000 }}
stage {{ tfrecord {{ files: "kinds.tfrecord" }} }}
stage {{ batch {{ batch_size: 8 }} }}
stage {{ parse_example {{
  feature {{ key: "n" int64 {{}} }} feature {{ key: "bag" sparse {{ dtype: "string" }} }} feature {{ key: "weights" sparse {{ dtype: "float32" }} }}
}} }}
"""


def rows_of(tensor):
    if isinstance(tensor, penstock.RaggedTensor):
        return tensor.to_list()
    if not isinstance(tensor, penstock.SparseTensor):
        return tensor.tolist()
    rows = [[] for _ in range(int(tensor.dense_shape[0]))]
    for (row, column), value in zip(tensor.indices.tolist(), tensor.values.tolist()):
        assert column == len(rows[row])
        rows[row].append(value)
    assert int(tensor.dense_shape[1]) >= max(map(len, rows), default=0)
    return rows


@pytest.mark.parametrize("spec", ["ragged", "sparse"])
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("size", [4, 5, 20])
def test_tensors_of_every_kind(tmp_path, supervised, spec, ranks, size):
    names = ["n", "pair", "name", "words", "ids"] if spec == "ragged" else ["n", "bag", "weights"]
    written = [{key: value for key, value in records(n).items() if value != []} for n in range(60)]
    tfrecord_files.write(tmp_path / "kinds.tfrecord", [tfrecord_files.example(**record) for record in written])
    (tmp_path / "kinds.textproto").write_text((KINDS if spec == "ragged" else SPARSE).format())
    assert Penstock(tmp_path, supervised.socket)("create", tmp_path / "kinds.textproto").code == 0
    options = [{"group": "r", "mode": "rank", "rank": r, "world_size": ranks} for r in range(ranks)] if ranks > 1 else [{}]
    loaders = [penstock.attach("kinds", socket=supervised.socket, batch_size=size, **one) for one in options]
    for number, rows in own_batches(steps_of(60, 8), 8, size):
        for r, loader in enumerate(loaders):
            batch = next(loader)
            mine = rows[r * len(rows) // ranks:(r + 1) * len(rows) // ranks]
            assert loader.step == number and sorted(batch) == sorted(names)
            for name in names:
                assert rows_of(batch[name]) == [records(n)[name] for n in mine], (name, number, r)
