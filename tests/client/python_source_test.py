"""Dataset.from_source: records, positions, resumes, parts, mistakes."""

import warnings

import numpy as np
import penstock
import pytest
from penstock._dataset import _source_processes

# Sources of this module travel by its name, as workers have pytest's sys.path.

STRING = penstock.TensorSpec((), penstock.string)


class Numbers(penstock.io.Source):
    """Texts of numbers, each with a position; writes down where it was begun."""

    def __init__(self, count, log=None, first=0, step=1, make=None):
        self.count, self.log, self.first, self.step, self.make = count, log, first, step, make or text

    def shard(self, num_shards, index):
        return Numbers(self.count, self.log, index, num_shards, self.make)

    def read(self, position):
        begin = self.first if position is None else int(position)
        if self.log is not None:
            with open(self.log, "a") as file:
                file.write(f"{begin}\n")
        for i in range(begin, self.count, self.step):
            yield self.make(i), str(i + self.step).encode()


class Again(penstock.io.Source):
    seeks = False

    def __init__(self, count):
        self.count = count

    def read(self, position):
        assert position is None
        return (text(i) for i in range(self.count))


class Seldom(Numbers):
    """One with a position beside few records."""

    def read(self, position):
        for i in range(0 if position is None else int(position), self.count):
            yield text(i), str(i + 1).encode() if i % 37 == 36 else None


class Rows(penstock.io.Source):
    gives_rows = True

    def read(self, position):
        for i in range(int(position or 0), 1000, 100):
            yield {"x": np.arange(i, i + 100), "s": np.array([f"{j}" for j in range(i, i + 100)], object)}, str(i + 100).encode()


class Breaks(penstock.io.Source):
    """Raises behind its tenth record."""

    def read(self, position):
        for i in range(int(position or 0), 10):
            yield text(i), str(i + 1).encode()
        raise OSError("the line is dead")


class Wrong(penstock.io.Source):
    def __init__(self, *items):
        self.items = items

    def read(self, position):
        return iter(self.items)


def text(i):
    return f"record {i}".encode() * (i % 4)


def pair(i):
    return {"n": np.int64(i), "v": np.full(3, i, np.float32), "s": f"s{i}"}


def ragged(i):
    return np.arange(i % 5)


def plain(dataset):
    return [np.asarray(element).tolist() for element in dataset]


def resumed(dataset, at):
    iterator = iter(dataset)
    for _ in range(at):
        next(iterator)
    state = iterator.state_dict()
    iterator.close()
    later = iter(dataset)
    later.load_state_dict(state)
    return later


@pytest.mark.parametrize("blocks", [{}, {"block_records": 7}, {"block_bytes": 100}, {"block_records": 1}], ids=str)
def test_records_in_order(blocks):
    dataset = penstock.Dataset.from_source(Numbers(500), **blocks)
    assert dataset.element_spec == STRING
    whole = [text(i) for i in range(500)]
    assert plain(dataset) == whole
    assert plain(dataset.repeat(2)) == whole * 2
    assert plain(penstock.Dataset.from_source(Numbers(0), **blocks)) == []
    for at in (0, 1, 250, 499):
        assert plain(resumed(dataset, at)) == whole[at:]


def test_a_resume_begins_at_a_position(tmp_path):
    log = tmp_path / "log"
    dataset = penstock.Dataset.from_source(Numbers(100_000, str(log)), block_records=10)
    assert "a resume begins at a state of its iterator" in dataset.explain()
    rest = resumed(dataset.batch(100), 900)
    assert next(rest).tolist() == [text(i) for i in range(90_000, 90_100)]
    rest.close()
    begun = [int(line) for line in log.read_text().split()]
    assert begun[0] == 0 and 60_000 < begun[-1] <= 90_000


def test_one_that_does_not_seek_says_so():
    dataset = penstock.Dataset.from_source(Again(1000), block_records=10)
    assert "goes through it again from its first element" in dataset.explain()
    assert plain(resumed(dataset, 567)) == [text(i) for i in range(567, 1000)]


def test_positions_beside_few_records():
    dataset = penstock.Dataset.from_source(Seldom(1000), block_records=10)
    whole = [text(i) for i in range(1000)]
    assert plain(dataset) == whole
    for at in (36, 37, 500, 999):
        assert plain(resumed(dataset, at)) == whole[at:]


def test_a_resume_finds_the_block_behind_a_position_again():
    def dataset(block_records=30):
        return penstock.Dataset.from_source(Seldom(20_000), block_records=block_records).batch(7)

    iterator = iter(dataset())
    # The front is some blocks ahead of the first positions.
    for _ in range(1500):
        next(iterator)
    state = iterator.state_dict()
    later = iter(dataset())
    later.load_state_dict(state)
    assert next(later).tolist() == next(iterator).tolist() == [text(i) for i in range(10_500, 10_507)]
    other = iter(dataset(block_records=50))
    with pytest.raises(penstock.FailedPreconditionError, match="another stream"):
        other.load_state_dict(state)
        next(other)


def test_parts():
    dataset = penstock.Dataset.from_source(Numbers(1000), num_shards=3, block_records=10)
    whole = plain(dataset)
    assert sorted(whole) == sorted(text(i) for i in range(1000)) and whole[:10] == [text(i) for i in range(0, 30, 3)]
    assert plain(resumed(dataset, 456)) == whole[456:]
    with pytest.raises(penstock.DataLossError, match="Again has no shard"):
        list(penstock.Dataset.from_source(Again(10), num_shards=2))


def test_records_that_are_nests():
    output = {"n": penstock.TensorSpec((), np.int64), "v": penstock.TensorSpec((3,), np.float32), "s": STRING}
    dataset = penstock.Dataset.from_source(Numbers(300, make=pair), output)
    assert dataset.element_spec == output
    found = list(dataset)
    assert [int(e["n"]) for e in found] == list(range(300)) and bytes(found[7]["s"]) == b"s7" and found[7]["v"].tolist() == [7.0] * 3
    ragged_ones = penstock.Dataset.from_source(Numbers(50, make=ragged), penstock.TensorSpec((None,), np.int64))
    assert plain(ragged_ones) == [list(range(i % 5)) for i in range(50)]
    assert plain(resumed(ragged_ones, 20)) == [list(range(i % 5)) for i in range(20, 50)]


def test_dicts_whose_keys_come_in_another_order():
    numbers = penstock.TensorSpec((), np.int64)
    source = Wrong(({"a": 1, "b": 2}, None), ({"b": 4, "a": 3}, None))
    rows = penstock.Dataset.from_source(source, output={"a": numbers, "b": numbers})
    assert [(int(row["a"]), int(row["b"])) for row in rows] == [(1, 2), (3, 4)]


def test_rows_of_many():
    output = {"x": penstock.TensorSpec((), np.int64), "s": STRING}
    dataset = penstock.Dataset.from_source(Rows(), output).batch(64)
    whole = list(dataset)
    assert sum((b["x"].tolist() for b in whole), []) == list(range(1000)) and whole[2]["s"].tolist()[0] == b"128"
    assert [b["x"].tolist() for b in resumed(dataset, 9)] == [b["x"].tolist() for b in whole[9:]]


def one_by_one(items, most_records, most_bytes):
    """The blocks of pairs, by what a block is: lists of records, and the position behind each."""
    blocks, records, size, has_positions = [], [], 0, False
    for record, position in items:
        records.append(record)
        size += len(record)
        has_positions = has_positions or position is not None
        if (size >= most_bytes or len(records) >= most_records) and (position is not None or not has_positions):
            blocks.append((records, position))
            records, size = [], 0
    return blocks + ([(records, position)] if records else [])


@pytest.mark.parametrize("most_records,most_bytes", [(1024, 500), (7, 1 << 18), (16, 100), (2, 1)])
def test_blocks_are_those_of_one_record_after_another(most_records, most_bytes):
    dice = np.random.default_rng(1)
    for every, largest in [(1, 1), (1, 100), (5, 40), (0, 40), (1, 1000)]:
        sizes = dice.integers(0, largest, 600) if largest > 1 else np.full(600, 10)
        items = [(b"x" * int(size), str(i).encode() if every and i % every == every - 1 else None) for i, size in enumerate(sizes)]
        made = [
            (element.element, element.position) if isinstance(element, penstock.At) else (element, None)
            for element in _source_processes._Blocks(Wrong(*items), None, [STRING], most_records, most_bytes)()
        ]
        # Blocks are told apart by how many strings each has.
        found = [([int(length) for length in texts.lengths], position) for texts, position in made]
        assert found == [([len(record) for record in records], position) for records, position in one_by_one(items, most_records, most_bytes)]


def test_no_block_waits_for_records_behind_it():
    taken = []

    def read():
        for i in range(100):
            taken.append(i)
            yield bytes(10 if i < 50 else 5), b"%d" % i

    source = Wrong()
    source.read = lambda position: read()
    blocks = _source_processes._Blocks(source, None, [STRING], 1024, 100)()
    for records in (10, 20, 30, 40, 50):
        next(blocks)
        assert len(taken) == records


def test_what_was_read_before_an_error_comes():
    iterator = iter(penstock.Dataset.from_source(Breaks()))
    assert [bytes(next(iterator)) for _ in range(10)] == [text(i) for i in range(10)]
    with pytest.raises(penstock.DataLossError, match="the Python function Breaks raised OSError: the line is dead"):
        next(iterator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(plain(penstock.Dataset.from_source(Breaks()).ignore_errors())) == 10


@pytest.mark.parametrize(
    "items, match",
    [
        ([b"a record alone"], "Wrong.read\\(\\) yields pairs of a record and the position behind it, not a bytes"),
        ([(5, None)], "Wrong.read\\(\\) yields bytes, not a int"),
        ([(b"x", "text")], "a position is bytes, not a str"),
        ([(b"x", bytes(65))], "a position has at most 64 bytes, not 65"),
    ],
)
def test_what_a_source_yields_is_checked(items, match):
    with pytest.raises(penstock.DataLossError, match=match):
        list(penstock.Dataset.from_source(Wrong(*items)))


@pytest.mark.parametrize(
    "record, message",
    [
        ({"n": 1, "v": np.zeros(4, np.float32), "s": b"x"}, r"float32 \(4,\) for 'v', not float32 \(3,\)"),
        ({"n": np.float32(1), "v": np.zeros(3), "s": b"x"}, r"float32 \(\) for 'n', not int64 \(\); return array.astype\(np.int64\)"),
        ({"n": 1.5, "v": np.zeros(3, np.float32), "s": b"x"}, r"float64 \(\) for 'n', not int64 \(\)"),
        ({"n": [1, [2]], "v": np.zeros(3, np.float32), "s": b"x"}, "a list for 'n', of which NumPy makes no array"),
        ({"n": 1, "v": np.zeros(3, np.float32), "s": 7}, r"a int for 's', not string \(\)"),
        ({"n": 1, "v": np.zeros(3, np.float32)}, "a dict of 'n', 'v', not of 'n', 'v', 's'"),
        ({"n": 1, "v": None, "s": b"x"}, "None at v"),
        (b"bytes", "a bytes, not a dict of 'n', 'v', 's'"),
    ],
)
def test_a_record_of_another_type_is_told_by_its_field(record, message):
    output = {"n": penstock.TensorSpec((), np.int64), "v": penstock.TensorSpec((3,), np.float32), "s": STRING}
    source = Wrong((pair(0), None), (record, None), (pair(2), None))
    with pytest.raises(penstock.DataLossError, match=f"Wrong: read\\(\\) yields something else than output declares: {message}"):
        list(penstock.Dataset.from_source(source, output))


def test_records_of_sizes_of_their_own_and_rows_are_told_by_their_field():
    with pytest.raises(penstock.DataLossError, match=r"float64 \(2,\) for 'value', not int64 \(None,\)"):
        list(penstock.Dataset.from_source(Wrong((np.zeros(2), None)), penstock.TensorSpec((None,), np.int64)))
    with pytest.raises(penstock.DataLossError, match=r"int64 \(100,\) for 'x', not uint8 \(None,\)"):
        list(penstock.Dataset.from_source(Rows(), {"x": penstock.TensorSpec((), np.uint8), "s": STRING}))


def test_pythons_numbers_are_of_the_declared_type():
    output = {"x": penstock.TensorSpec((2,), np.float32), "n": penstock.TensorSpec((), np.uint8)}
    records = {"x": [1.5, 2], "n": 3}, {"n": 4, "x": (0, 1)}, {"x": np.ones(2), "n": np.uint8(5)}
    rows = list(penstock.Dataset.from_source(Wrong(*((record, None) for record in records)), output))
    assert [(row["x"].tolist(), int(row["n"])) for row in rows] == [([1.5, 2.0], 3), ([0.0, 1.0], 4), ([1.0, 1.0], 5)]


def test_mistakes():
    with pytest.raises(TypeError, match="from_source takes a penstock.io.Source, not a list; from_generator takes iterables"):
        penstock.Dataset.from_source([1])
    with pytest.raises(TypeError, match="block_records"):
        penstock.Dataset.from_source(Numbers(1), block_records="many")
    with pytest.raises(ValueError, match="block_bytes"):
        penstock.Dataset.from_source(Numbers(1), block_bytes=0)
    with pytest.raises(TypeError, match="from_generator takes no workers"):
        penstock.Dataset.from_source(Numbers(1), workers=2)
    with pytest.raises(penstock.DataLossError, match="Source has no read"):
        list(penstock.Dataset.from_source(penstock.io.Source()))
