"""Dataset.from_generator, end to end: what comes, in which order, behind a resume, behind a kill; and what is refused."""

import os
import random
import signal
import sys
import time
import types
import warnings

import numpy as np
import pytest

import penstock
from python_calls_test import Does, arrays, digest

# Functions of this module travel by its name, as workers have pytest's sys.path.

INT = penstock.TensorSpec((), np.int64)
generated = penstock.Dataset.from_generator


def numbers(stop=10, start=0):
    yield from range(start, stop)


def pairs():
    for i in range(5):
        yield {"n": i, "parts": (np.arange(i, dtype=np.float32), f"text {i}")}


PAIRS = {"n": INT, "parts": (penstock.TensorSpec((None,), np.float32), penstock.TensorSpec((), penstock.string))}


def test_a_generator_function():
    dataset = generated(numbers, output_signature=INT)
    assert dataset.element_spec == INT and arrays(dataset) == list(range(10))
    # Each pass, and each epoch, begins anew.
    assert arrays(dataset) == list(range(10))
    assert arrays(dataset.repeat(3)) == [*range(10)] * 3
    assert arrays(dataset.shuffle(4, seed=1).batch(3).unbatch().skip(2).take(7)) == arrays(dataset.shuffle(4, seed=1).skip(2).take(7))
    with pytest.raises(TypeError, match="length is unknown: behind from_generator only the elements tell"):
        len(dataset)


def test_nests_strings_and_sizes_that_differ():
    expected = [(i, list(range(i)), f"text {i}".encode()) for i in range(5)]
    dataset = generated(pairs, output_signature=PAIRS)
    assert dataset.element_spec == PAIRS
    assert [(e["n"], e["parts"][0].tolist(), e["parts"][1]) for e in arrays(dataset)] == expected
    types = {"n": np.int64, "parts": (np.float32, penstock.string)}
    dataset = generated(pairs, types)
    assert dataset.element_spec == PAIRS and len(arrays(dataset)) == 5
    dataset = generated(pairs, types, {"n": (), "parts": ((None,), None)})
    assert dataset.element_spec == PAIRS and len(arrays(dataset)) == 5


def test_all_is_learned_where_nothing_is_said():
    dataset = generated(Does("lambda: iter([(1, [1.5, 2.5]), (2, [3.5, 4.5])])"))
    assert dataset.element_spec == (INT, penstock.TensorSpec((2,), np.float64))
    assert [(int(a), b.tolist()) for a, b in dataset] == [(1, [1.5, 2.5]), (2, [3.5, 4.5])]
    with pytest.raises(penstock.InvalidArgumentError, match="gives no element of which its types could be learned"):
        list(generated(Does("lambda: []")))


def test_arguments_are_numpys():
    given = Does("lambda a, b, c: iter([f'{type(a).__name__} {type(b).__name__} {type(c).__name__} {a + 1} {b.sum()} {c.decode()}'])")
    assert arrays(generated(given, penstock.string, args=(2, [2, 3], "x"))) == [b"int64 ndarray bytes 3 5 x"]
    assert arrays(generated(numbers, np.int64, args=(7, 3))) == [3, 4, 5, 6]


class Squares:
    """An iterable that can be gone through anew."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return (i * i for i in range(self.count))


def test_iterables_and_classes():
    assert arrays(generated(Squares(4), np.int64)) == [0, 1, 4, 9]
    assert arrays(generated(Squares, np.int64, args=(3,))) == [0, 1, 4]
    assert arrays(generated([3, 1, 2], np.int64)) == [3, 1, 2]


def test_no_element_at_all_and_many():
    assert arrays(generated(numbers, output_signature=INT, args=(0,))) == []
    many = generated(numbers, output_signature=INT, args=(20_000,)).batch(1000)
    assert np.concatenate(arrays(many)).tolist() == list(range(20_000))


# --- resume -------------------------------------------------------------------------------------


def tail_behind(make, step):
    with iter(make()) as iterator:
        for _ in range(step):
            next(iterator)
        state = iterator.state_dict()
    with make().as_numpy_iterator() as resumed:
        resumed.load_state_dict(state)
        return list(resumed)


class Counter:
    """An iterable whose iterator has states, and which writes where it begins."""

    def __init__(self, log, count=3000, payload=None):
        self.log, self.count, self.payload = str(log), count, payload

    def __iter__(self):
        return CounterIterator(self)


class CounterIterator:
    def __init__(self, of):
        self.of, self.at, self.has_told = of, 0, False

    def state_dict(self):
        return {"at": self.at, "payload": self.of.payload, "more": (1, b"x", None, [2.5])}

    def load_state_dict(self, state):
        assert state["more"] == (1, b"x", None, [2.5])
        self.at = state["at"]

    def __next__(self):
        if not self.has_told:
            self.has_told = True
            with open(self.of.log, "a") as log:
                log.write(f"{self.at}\n")
        if self.at == self.of.count:
            raise StopIteration
        time.sleep(0.0005)
        self.at += 1
        return np.array([self.at - 1, random.random()])


ROW = penstock.TensorSpec((2,), np.float64)


def began_at(log):
    return [int(line) for line in log.read_text().split()]


def test_a_resume_begins_at_a_state_of_the_iterator(tmp_path):
    log = tmp_path / "log"

    def make():
        return generated(Counter(log), output_signature=ROW, seed=5)

    whole = arrays(make())
    assert [int(row[0]) for row in whole] == list(range(3000)) and len({row[1] for row in whole}) == 3000
    log.unlink()
    tail = tail_behind(make, 2500)
    assert np.array_equal(tail, whole[2500:])
    # A worker that is made anew behind it begins at a later state.
    assert began_at(log)[0] == 0 and 0 < began_at(log)[1] <= 2500, began_at(log)


PAYLOADS = [(np.zeros(2), "holds more than dicts"), (random.Random(1).randbytes(2000), "takes 2")]


@pytest.mark.parametrize("payload, why", PAYLOADS, ids=["array", "long"])
def test_a_state_that_no_cursor_holds_is_not_used(tmp_path, capsys, monkeypatch, payload, why):
    log = tmp_path / "log"

    def make():
        return generated(Counter(log, 300, payload), output_signature=ROW, seed=5)

    whole = arrays(make())
    log.unlink()
    assert np.array_equal(tail_behind(make, 200), whole[200:])
    assert set(began_at(log)) == {0}
    # The worker says so, once.
    from penstock import _row
    from penstock._worker import _elements

    monkeypatch.setattr(_elements, "STATE_NS", 0)
    row = types.SimpleNamespace(key=1, mixed=_row.mixed, At=_row.At)
    elements = _elements.Elements("Counter", Counter(log, 300, payload), lambda row: [row], [np.zeros(2)], None, row, None)
    for i in range(20):
        (array,), behind, is_one, state = elements(0, i, 0, b"")
        assert (array[0], behind, is_one, state) == (i, i + 1, True, b"")
    assert capsys.readouterr().err.count(f"the state of Counter's iterator {why}") == 1


def lines(path, log, position=None):
    with open(log, "a") as file:
        file.write(f"{int.from_bytes(position or b'', 'little')}\n")
    with open(path, "rb") as file:
        file.seek(int.from_bytes(position or b"", "little"))
        while line := file.readline():
            yield penstock.At(line, file.tell().to_bytes(8, "little"))


def test_a_resume_begins_at_a_position_that_was_yielded(tmp_path):
    path, log = tmp_path / "lines", tmp_path / "log"
    expected = [b"line %d\n" % i for i in range(5000)]
    path.write_bytes(b"".join(expected))

    def make():
        return generated(lines, penstock.string, (), args=(str(path), str(log)))

    assert arrays(make()) == expected
    log.unlink()
    assert tail_behind(make, 4500) == expected[4500:]
    assert began_at(log)[0] == 0 and began_at(log)[-1] > 0


def test_other_iterables_are_gone_through_again(tmp_path):
    def make():
        return generated(drawing, output_signature=ROW, seed=7).repeat(2)

    whole = arrays(make())
    assert len({row[1] for row in whole}) == 600
    for step in (0, 1, 150, 299, 300, 301, 599, 600):
        tail = tail_behind(make, step)
        assert len(tail) == 600 - step and np.array_equal(tail, whole[step:]), step


def drawing():
    for i in range(300):
        yield np.array([i, random.random() + np.random.random() + penstock.rng().random()])


def test_explain_says_what_a_resume_costs(tmp_path):
    assert "goes through it again from its first element" in generated(numbers, output_signature=INT).explain()
    assert "begins at a state of its iterator" in generated(lines, penstock.string, (), args=("a", "b")).explain()


def test_the_end_is_sticky_and_a_resume_behind_it_has_nothing():
    dataset = generated(numbers, output_signature=INT)
    assert tail_behind(lambda: dataset, 10) == []
    with iter(dataset) as iterator:
        assert len(list(iterator)) == 10
        assert next(iterator, None) is None


def positioned(position=None):
    for i in range(int(position or b"0"), 400):
        yield penstock.At(i, b"%d" % (i + 1))


def test_forged_cursors_are_refused_or_resume_somewhere():
    dataset = generated(positioned, output_signature=INT)
    with iter(dataset) as iterator:
        for _ in range(300):
            next(iterator)
        state = iterator.state_dict()
    rng = random.Random(5)
    for _ in range(20):
        cursor = bytearray(state["cursor"])
        cursor[rng.randrange(len(cursor) // 2, len(cursor))] ^= 1 << rng.randrange(8)
        with iter(dataset) as forged:
            forged.load_state_dict({**state, "cursor": bytes(cursor)})
            try:
                for _ in range(3):
                    next(forged, None)
            except penstock.Error:
                pass
    # Nothing of it has harmed the daemon.
    assert arrays(dataset) == list(range(400))


# --- shards -------------------------------------------------------------------------------------


def part(stop, shard_index, num_shards):
    yield from range(shard_index, stop, num_shards)


def test_shards_come_in_turns():
    for count in (1, 2, 3):
        assert arrays(generated(part, output_signature=INT, args=(20,), num_shards=count)) == list(range(20))
    uneven = generated(Does("lambda shard_index, num_shards: [shard_index] * (3 * shard_index)"), output_signature=INT, num_shards=3)
    assert arrays(uneven) == [1, 2, 1, 2, 1, 2, 2, 2, 2]

    def make():
        return generated(part, output_signature=INT, args=(2000,), num_shards=2)

    assert tail_behind(make, 777) == list(range(777, 2000))


TORCH = """
import sys, types

class WorkerInfo:
    def __init__(self, **values):
        self.__dict__.update(values)

worker = types.ModuleType("torch.utils.data._utils.worker")
worker.WorkerInfo, worker._worker_info = WorkerInfo, None
sys.modules[worker.__name__] = worker

def split_by_worker(shard_index, num_shards):
    info = worker._worker_info
    yield from range(info.id, 20, info.num_workers)

def asks(position=None):
    yield worker._worker_info is None
"""


def test_a_shard_is_a_worker_to_who_asks_torch(tmp_path, monkeypatch):
    (tmp_path / "asks_torch.py").write_text(TORCH)
    monkeypatch.syspath_prepend(tmp_path)
    import asks_torch

    monkeypatch.delitem(sys.modules, "torch.utils.data._utils.worker")
    for count in (1, 3):
        assert arrays(generated(asks_torch.split_by_worker, output_signature=INT, num_shards=count)) == list(range(20))
    # And where nothing is divided there is none.
    assert arrays(generated(asks_torch.asks, output_signature=penstock.TensorSpec((), np.bool_))) == [True]


# --- what fails ---------------------------------------------------------------------------------


def killed(mark, at):
    for i in range(200):
        if i == at and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        yield np.array([i, random.random()])


def test_a_killed_worker_changes_nothing(tmp_path):
    there = tmp_path / "there"
    there.touch()
    expected = digest(generated(killed, output_signature=ROW, args=(str(there), 77), seed=1))
    assert digest(generated(killed, output_signature=ROW, args=(str(tmp_path / "mark"), 77), seed=1)) == expected
    assert (tmp_path / "mark").exists()


def fails_at(at):
    for i in range(10):
        if i == at:
            raise KeyError("gone")
        yield i


class FailsOnce:
    """An iterator that goes on behind an error."""

    def __init__(self):
        self.at = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at == 10:
            raise StopIteration
        if self.at == 4:
            raise KeyError("gone")
        return self.at


def test_an_exception_is_its_elements_failure():
    with pytest.raises(penstock.DataLossError, match="numbers|fails_at raised KeyError: 'gone'"):
        list(generated(fails_at, output_signature=INT, args=(4,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A generator is over then.
        assert arrays(generated(fails_at, output_signature=INT, args=(4,)).ignore_errors()) == [0, 1, 2, 3]
        assert arrays(generated(FailsOnce, output_signature=INT).ignore_errors()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_types_are_cast_as_in_tensorflow():
    assert [(x.dtype, float(x)) for x in generated(Does("lambda: [1, np.float64(2.5), np.int64(3)]"), np.float32)] == [(np.float32, v) for v in (1, 2.5, 3)]
    assert [x.dtype for x in generated(Does("lambda: [np.arange(3)]"), np.int32)] == [np.int32]
    for text, complaint in [
        ("lambda: [1.5]", "not int64"),
        ("lambda: ['x']", "not int64"),
        ("lambda: [[1, 2]]", r"for 'value', not int64 \(\)"),
        ("lambda: [None]", "returned None"),
        ("lambda: [{'a': 1}]", "returned a dict, not a tensor"),
        ("lambda: 3", "int, not an iterable"),
    ]:
        with pytest.raises(penstock.DataLossError, match=complaint):
            list(generated(Does(text), output_signature=INT))


def slowly():
    for i in range(300):
        time.sleep(0.01)
        yield i


def test_what_is_gone_through_again_takes_no_elements_time():
    def make():
        return generated(slowly, output_signature=INT, timeout_ms=1500)

    assert tail_behind(make, 290) == list(range(290, 300))


def hangs():
    yield 1
    time.sleep(1000)


def test_a_generator_that_hangs():
    # It does so whoever begins anew.
    with pytest.raises(penstock.Error, match=r"hangs took longer than timeout_ms \(300\)"):
        list(generated(hangs, output_signature=INT, timeout_ms=300))


def test_what_is_refused():
    refused = [
        (lambda: generated(3), TypeError, "takes a function that returns an iterable, or an iterable, not a int"),
        (lambda: generated(iter([1]), np.int64), TypeError, "not an iterator"),
        (lambda: generated(numbers, np.int64, output_signature=INT), TypeError, "output_types argument can not be used together with the output_signature"),
        (lambda: generated(numbers, output_shapes=(), output_signature=INT), TypeError, "output_shapes argument can not"),
        (lambda: generated(numbers, output_shapes=()), TypeError, "output_shapes stands beside output_types"),
        (lambda: generated(numbers, (np.int64, np.int64), ((),)), TypeError, "another structure than output_types"),
        (lambda: generated(numbers, "int5"), TypeError, "int5"),
        (lambda: generated(numbers, np.int64, workers=2), TypeError, "from_generator takes no workers"),
        (lambda: generated(numbers, np.int64, procs=2), TypeError, "unexpected keyword argument 'procs'"),
        (lambda: generated([1], np.int64, num_shards=2), TypeError, "num_shards takes a function"),
        (lambda: generated(numbers, np.int64, num_shards=0), ValueError, "num_shards is at least 1"),
        (lambda: penstock.At(1, "x"), TypeError, "a position is bytes, not a str"),
        (lambda: penstock.At(1, bytes(65)), ValueError, "at most 64 bytes, not 65"),
    ]
    for make, kind, complaint in refused:
        with pytest.raises(kind, match=complaint):
            make()
    with pytest.raises(penstock.DataLossError, match="ValueError: a position has at most 64 bytes"):
        list(generated(Does("lambda position=None: (penstock.At(1, bytes(65)) for _ in range(3))"), output_signature=INT))
