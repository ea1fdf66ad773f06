"""Consumers that take batches of fewer rows than the pipeline's, over one stream."""

import pytest

from programs import Penstock
from test_groups import attach, create, supervised, values  # noqa: F401

penstock = pytest.importorskip("penstock")


def parts(loader):
    return [values(batch) for batch in loader]


def expected(stop, batch, size):
    """Rows of each batch: those of a pipeline's batch, cut."""
    return [list(range(first, min(first + size, begin + batch, stop)))
            for begin in range(0, stop, batch) for first in range(begin, min(begin + batch, stop), size)]


@pytest.mark.parametrize("size", [1, 3, 4, 6, 12])
def test_each_consumer_has_its_own_batch_size(tmp_path, create, size):
    server = create(stop=100, batch=12)
    whole, part = attach(server), attach(server, group="parts", batch_size=size)
    # 100 rows: eight batches of 12, and one of 4.
    taken = []
    for batch in whole:
        rows = values(batch)
        assert rows == list(range(12 * whole.step, min(12 * whole.step + 12, 100)))
        while len(taken) < len(expected(rows[-1] + 1, 12, size)):
            taken.append(values(next(part)))
            first = taken[-1][0]
            assert part.step == first // 12 * (12 // size) + first % 12 // size
    assert taken == expected(100, 12, size)
    with pytest.raises(StopIteration):
        next(part)
    assert part.stats()["copies"] == 0
    stats = Penstock(tmp_path, server.socket)("stats", "ranges").out
    assert "steps       9 " in stats and "rows        100 " in stats


def test_any_batch_is_a_place_to_go_on_from(create):
    server = create(stop=40, batch=12)
    all_parts = expected(40, 12, 4)
    loader = attach(server, batch_size=4)
    states = [loader.state_dict()]
    seen = []
    for batch in loader:
        seen.append(values(batch))
        states.append(loader.state_dict())
    assert seen == all_parts
    # Alone, the stream goes there; beside others, it is replayed.
    for busy in [False, True]:
        other = attach(server, group="other") if busy else None
        for taken, state in enumerate(states):
            if taken == 0:
                continue
            again = attach(server, batch_size=4, cursor=state["cursor"])
            # Behind the short batch numbers are left out.
            assert again.state_dict()["step"] == (11 if taken == len(all_parts) else state["step"])
            assert parts(again) == all_parts[taken:], taken
            again.close()
        del other
    # load_state_dict goes back and forth, in the middle of a batch too.
    for taken in [5, 2, 9, 4]:
        loader.load_state_dict(states[taken])
        assert values(next(loader)) == all_parts[taken]
        assert loader.stats()["leases"] <= 1


def test_a_cursor_inside_of_a_batch_fits_sizes_that_divide_what_was_taken(create):
    server = create(stop=40, batch=12)
    loader = attach(server, batch_size=4)
    next(loader)
    cursor = loader.state_dict()["cursor"]
    loader.close()
    assert values(next(attach(server, batch_size=2, cursor=cursor))) == [4, 5]
    for options in [{}, {"batch_size": 3}, {"batch_size": 12}]:
        with pytest.raises(penstock.FailedPreconditionError, match="inside of a batch"):
            attach(server, cursor=cursor, **options)


def test_memory_comes_back_with_the_last_part(create):
    server = create(stop=10000, batch=12)
    loader = attach(server, batch_size=4)
    held = [next(loader) for _ in range(200)]  # far more than the ring has
    assert [values(batch) for batch in held] == expected(800, 12, 4)[:200]
    assert loader.stats()["copies"] > 0
    held.clear()
    first = next(loader)
    second = next(loader)
    assert loader.stats()["leases"] >= 1
    del first, second
    for _ in range(100):
        next(loader)
    loader.close()
    # Nothing of the ring is lost: others go on.
    other = attach(server)
    for _ in range(100):
        next(other)


def test_a_killed_daemon_in_the_middle_of_a_batch(create):
    server = create(stop=200, batch=12, more="stage { repeat {} }")
    loader = attach(server, batch_size=4)
    one_pass = expected(200, 12, 4)
    for number in range(120):
        if number % 20 == 10:
            server.kill()
        assert values(next(loader)) == one_pass[number % len(one_pass)]


def test_what_is_refused(create):
    server = create(stop=40, batch=12)
    for size in [5, 24]:
        with pytest.raises(penstock.FailedPreconditionError, match=f"{size} does not divide 12"):
            attach(server, batch_size=size)
    for size in [0, -1]:
        with pytest.raises(penstock.InvalidArgumentError, match="batch_size"):
            attach(server, batch_size=size)
    with pytest.raises(penstock.InvalidArgumentError, match="broadcast"):
        attach(server, group="s", mode="split", batch_size=4)
    with pytest.raises(penstock.InvalidArgumentError, match="broadcast"):
        attach(server, group="r", mode="rank", rank=0, world_size=2, batch_size=4)
    with pytest.raises(TypeError):
        len(attach(server, batch_size=4))


def test_writing_into_one_part_leaves_the_others(create):
    from penstock import _core

    server = create(stop=4000, batch=12)
    loader = attach(server, batch_size=4)
    other = attach(server, group="other")
    written = []
    for number in range(90):
        batch = next(loader)
        assert values(batch) == list(range(4 * number, 4 * number + 4))
        mine = _core.writable(batch)
        mine += 1_000_000
        # Both the one before and this one keep what was written, until they are let go of.
        written = [*written, mine][-2:]
        for back, array in enumerate(reversed(written)):
            first = 4 * (number - back) + 1_000_000
            assert array.tolist() == list(range(first, first + 4))
        if number % 3 == 2:
            assert values(next(other)) == list(range(4 * number - 8, 4 * number + 4))
