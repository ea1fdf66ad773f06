"""How many elements there are is written twice: as each op's `Count()` in C++ and as `cardinality=` of its method in Python. Both say the same."""

import pathlib
import random
import re

import numpy as np
import pytest

import penstock
from penstock._dataset._described import counted
from penstock._spec._stage import Nested, Spec, Stage

ROOT = pathlib.Path(__file__).parents[2]
Dataset = penstock.Dataset


def ops():
    """All ops of a spec."""
    proto = (ROOT / "proto/penstock/v1/ops.proto").read_text()
    stage = re.search(r"^message Stage \{(.*?)^\}", proto, re.DOTALL | re.MULTILINE)[1]
    return {name for name, _ in re.findall(r"^\s*\w+ (\w+) = (\d+);", stage[stage.index("oneof op") :], re.MULTILINE)}


def ops_of(value):
    """Those of stages, and of the stages in them."""
    if isinstance(value, Stage):
        return {value.op}.union(*(ops_of(inner) for _, inner in value.fields))
    if isinstance(value, Nested):
        return ops_of(value.stages)
    if hasattr(value, "fields"):
        return set().union(*(ops_of(inner) for _, inner in value.fields))
    return set().union(*map(ops_of, value)) if isinstance(value, (list, tuple)) else set()


# Files, or a Python object, tell how many there are (python_counting_test.py); or no method gives a dataset that ends with it.
OTHERS = {
    "arrow", "csv", "files", "fixed_length_record", "from_generator", "json_lines", "list_files", "load", "parquet", "parse_sequence_example", "python",
    "reduce", "save", "tar", "text_line", "tfrecord", "window_part",
}  # fmt: skip


def rows(count=10):
    return Dataset.range(count)


def lists(count=10):
    return rows(count).map(lambda x: np.arange(3) * x)


def datasets(folder):
    """An op or more, each in a dataset, by the op's name."""
    text = Dataset.from_tensor_slices([b""] * 6)
    return {
        "assert_cardinality": [rows().assert_cardinality(10), rows().filter(lambda x: x > 3).assert_cardinality(6), rows().repeat().assert_cardinality(-1)],
        "batch": [rows(n).batch(k, remainder=r) for n in (0, 7, 12) for k in (1, 4, 5) for r in (None, "drop", "pad", "wrap")],
        "bucket_by_sequence_length": [lists().bucket_by_sequence_length(lambda x: np.shape(x)[0], [2], [3, 3])],
        "cache": [rows().cache(), rows().cache(str(folder / "cache"))],
        "choose_from_datasets": [Dataset.choose_from_datasets([rows(), rows()], rows(5).map(lambda x: x % 2), stop_on_empty_dataset=s) for s in (True, False)],
        "concatenate": [rows().concatenate(rows(3)), rows().concatenate(rows().filter(lambda x: x > 1)), rows().concatenate(rows().repeat())],
        "counter": [Dataset.counter(), Dataset.counter().take(4)],
        "decode_json": [Dataset.from_tensor_slices([b'{"n": 1}'] * 4).decode_json({"n": penstock.io.FixedLenFeature([], penstock.int64)})],
        "enumerate": [rows().enumerate(), rows().repeat().enumerate(3)],
        "filter": [rows().filter(lambda x: x > 3), rows().repeat().filter(lambda x: x > 3), rows(0).filter(lambda x: x > 3)],
        "flat_map": [rows().flat_map(lambda x: Dataset.range(2)), rows().repeat().flat_map(lambda x: Dataset.range(2))],
        "from_tensor_slices": [Dataset.from_tensor_slices(np.arange(7)), Dataset.from_tensor_slices({"a": np.zeros((3, 2))})],
        "from_tensors": [Dataset.from_tensors(np.arange(7))],
        "group_by_window": [rows().group_by_window(lambda x: x % 2, lambda key, window: window.batch(4), 4)],
        "ignore_errors": [rows().map(lambda x: x * 2).ignore_errors()],
        "interleave": [rows().interleave(lambda x: Dataset.range(2), cycle_length=2), rows().repeat().interleave(lambda x: Dataset.range(2))],
        "map": [rows().map(lambda x: x + 1)],
        "pack": [lists().pack(4)],
        "pad_to_cardinality": [rows().map(lambda x: {"x": x}).pad_to_cardinality(12)],
        "padded_batch": [lists(n).padded_batch(k, drop_remainder=d) for n in (0, 7, 12) for k in (4, 5) for d in (True, False)],
        "parse_example": [text.map(lambda x: penstock.io.parse_single_example(x, {"n": penstock.io.FixedLenFeature([], penstock.int64, 1)}))],
        "prefetch": [rows().prefetch(2)],
        "ragged_batch": [lists(n).ragged_batch(k, drop_remainder=d) for n in (0, 7, 12) for k in (4, 5) for d in (True, False)],
        "random": [Dataset.random(3), Dataset.random(3).take(4)],
        "range": [Dataset.range(*arguments) for arguments in ((0,), (5,), (3, 9, 2), (9, 3, -2), (9, 3, 2), (-5, 5, 3))],
        "rebatch": [rows(n).batch(4).rebatch(k, drop_remainder=d) for n in (0, 7, 12) for k in (3, [1, 3]) for d in (True, False)],
        "rejection_resample": [rows().rejection_resample(lambda x: x % 2, [0.5, 0.5], [0.5, 0.5], seed=3)],
        "repeat": [rows(n).repeat(k) for n in (0, 7) for k in (None, -1, 0, 1, 3)],
        "sample_from_datasets": [Dataset.sample_from_datasets([rows(), rows(3)], w, seed=1, stop_on_empty_dataset=s) for w in (None, [1.0, 0.0], [0.5, 0.5]) for s in (True, False)],
        "scan": [rows().scan(np.int64(0), lambda state, x: (state + x, state))],
        "shard": [rows(n).shard(k, i) for n in (0, 7, 12) for k in (1, 3) for i in range(k)] + [rows().repeat().shard(3, 1)],
        "shuffle": [rows().shuffle(4, seed=1), rows().repeat().shuffle(4, seed=1)],
        "skip": [rows(n).skip(k) for n in (0, 7) for k in (-1, 0, 3, 9)] + [rows().repeat().skip(3), rows().repeat().skip(-1)],
        "snapshot": [rows().snapshot(str(folder / "snapshot"))],
        "sparse_batch": [lists(7).sparse_batch(3, [5])],
        "take": [rows(n).take(k) for n in (0, 7) for k in (-1, 0, 3, 9)] + [rows().repeat().take(3), rows().repeat().take(-1)],
        "take_while": [rows().take_while(lambda x: x < 3)],
        "unbatch": [rows(n).batch(4, remainder=r).unbatch() for n in (0, 7, 12) for r in (None, "drop", "pad", "wrap")] + [lists().unbatch()],
        "unique": [rows().unique()],
        "window": [rows().window(3).flat_map(lambda w: w.batch(3))],
        "zip": [Dataset.zip(rows(), rows(3)), Dataset.zip(rows(), rows().repeat()), Dataset.zip(rows().repeat(), rows().repeat())],
    }


def check(dataset):
    """What Python says is never another thing than what the daemon says; one of them may not know. Both, and a text for people."""
    stated = dataset.cardinality()
    found, why = counted(Spec(dataset._stages, None, dataset._options))
    shown = f"{Spec(dataset._stages).text}\nPython says {stated}, the daemon {found} ({why})"
    if stated >= 0:
        assert found in (None, stated) and "has no end" not in why, shown
        if stated < 1000:
            assert sum(1 for _ in dataset) == stated, shown
    elif stated == penstock.INFINITE_CARDINALITY:
        assert found is None, shown
    return stated, found, shown


def test_both_say_the_same_of_every_op(tmp_path):
    by_op = datasets(tmp_path)
    assert ops() == set(by_op) | OTHERS
    for op, of_op in by_op.items():
        for dataset in of_op:
            assert op in ops_of(dataset._stages), f"{op} is in no dataset of its own"
            stated, found, shown = check(dataset)
            if stated != penstock.UNKNOWN_CARDINALITY:
                assert found == (stated if stated >= 0 else None), shown


def drawn(dice, depth=0):
    dataset = Dataset.range(dice.randrange(3), dice.randrange(40), dice.choice([1, 2, -1]))
    for _ in range(dice.randrange(6)):
        kind = dice.randrange(12)
        if kind == 0:
            dataset = dataset.take(dice.randrange(-1, 30))
        elif kind == 1:
            dataset = dataset.skip(dice.randrange(-1, 12))
        elif kind == 2:
            shards = dice.randrange(1, 5)
            dataset = dataset.shard(shards, dice.randrange(shards))
        elif kind == 3:
            dataset = dataset.repeat(dice.choice([None, 0, 1, 2, 3]))
        elif kind == 4:
            dataset = dataset.shuffle(dice.randrange(1, 9), seed=1)
        elif kind == 5:
            dataset = dataset.map(lambda x: x + 1)
        elif kind == 6:
            batches = dataset.batch(dice.randrange(1, 7), remainder=dice.choice([None, "drop", "pad", "wrap"]))
            dataset = dice.choice([batches.unbatch(), batches.rebatch(dice.choice([2, [1, 3]]), drop_remainder=dice.random() < 0.5).unbatch()])
        elif kind == 7:
            dataset = dataset.filter(lambda x: x % 3 != 1)
        elif kind == 8 and depth < 2:
            dataset = dataset.concatenate(drawn(dice, depth + 1))
        elif kind == 9 and depth < 2:
            dataset = Dataset.zip(dataset, drawn(dice, depth + 1)).map(lambda a, b: a + b)
        elif kind == 10 and depth < 2:
            dataset = Dataset.sample_from_datasets([dataset, drawn(dice, depth + 1)], seed=1, stop_on_empty_dataset=dice.random() < 0.5)
        elif kind == 11:
            dataset = dataset.prefetch(1)
    return dataset


@pytest.mark.parametrize("seed", range(4))
def test_both_say_the_same_of_datasets_that_are_drawn(seed):
    dice = random.Random(seed)
    known = endless = 0
    for _ in range(100):
        dataset = drawn(dice)
        if dice.random() < 0.5:
            dataset = dataset.batch(dice.randrange(1, 7), remainder=dice.choice([None, "drop", "pad", "wrap"]))
        stated, _, _ = check(dataset)
        known += stated >= 0
        endless += stated == penstock.INFINITE_CARDINALITY
    assert known > 30 and endless > 0
