"""Pipelines that are drawn, with elements that fail and are ignored: as if those had never been."""

import itertools
import random

import numpy as np
import penstock
import pytest

MOST = 100  # elements of one


def drawn(dice):
    """Ops behind numbers. Not among them are those that deal with all elements, failing ones too: shard, shuffle, enumerate."""
    text, rank = "", 0
    for _ in range(1 + dice.randrange(5)):
        size = 1 + dice.randrange(4)
        anywhere = (
            f".take({dice.randrange(20)})", f".skip({dice.randrange(6)})", f".repeat({size})", ".cache()", ".map(lambda x: x * 3 + 1)",
            f".apply(lambda d: d.skip({size}).concatenate(d.take({size})))",
        )  # fmt: skip
        of_numbers = (
            f".filter(lambda x: x % {size + 1} == 0)", f".take_while(lambda x: x < {size * 30})", ".unique()",
            f".flat_map(lambda x: t.range(x % {size + 1}))", f".interleave(lambda x: t.range(x % 4), cycle_length={size})",
            ".scan(np.int64(1), lambda s, x: ((s + x) % 997, s))",
        )  # fmt: skip
        to_rows = (
            f".batch({size}, drop_remainder={size == 2})", f".group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), window_size={size})",
            f".window({size}, shift=2).flat_map(lambda w: w.batch({size}))",
        )  # fmt: skip
        kind = dice.randrange(4)
        if kind == 0:
            text += dice.choice(anywhere)
        elif rank == 0 and kind < 3:
            text += dice.choice(of_numbers)
        elif rank == 0:
            text, rank = text + dice.choice(to_rows), 1
        else:
            op = dice.choice((".unbatch()", ".unbatch()", f".rebatch({size})"))
            text, rank = text + op, 0 if op == ".unbatch()" else 1
    return text


def behind(texts, ops):
    texts = np.array([b"", *texts], object)[1:]
    numbers = penstock.Dataset.from_tensor_slices(texts).map(lambda text: penstock.io.string_to_number(text, np.int64))
    return eval("numbers" + ops, {"numbers": numbers, "t": penstock.Dataset, "np": np})


def elements(iterator, most=MOST):
    return [element.tolist() for element in itertools.islice(iterator, most)]


def passes(dataset, workers):
    options = penstock.Options()
    options.threading.private_threadpool_size = workers
    return iter(dataset.with_options(options))


@pytest.mark.parametrize("seed", range(80))
def test_ignored_elements_leave_no_trace(seed):
    dice = random.Random(seed)
    failing = dice.choice((0.1, 0.5, 0.9))
    texts = [dice.choice((b"bad", b"")) if dice.random() < failing else b"%d" % dice.randrange(100) for _ in range(dice.choice((5, 20, 150)))]
    texts.append(b"8")
    ops = drawn(dice)
    with passes(behind([text for text in texts if text.isdigit()], ops), 2) as iterator:
        expected = elements(iterator)
    dataset = behind(texts, ops).ignore_errors()
    with passes(dataset, 1 + seed % 4) as iterator:
        assert elements(iterator) == expected, ops
    taken = seed % (len(expected) + 1)
    with passes(dataset, 2) as iterator:
        assert elements(iterator, taken) == expected[:taken], ops
        state = iterator.state_dict()
    with passes(dataset, 3) as iterator:
        iterator.load_state_dict(state)
        assert elements(iterator, MOST - taken) == expected[taken:], ops
